/** What the pictures in the docs are drawn with: SVG that suits light and dark pages. */

export const number = (value: number): string => value.toFixed(1).replace(/\.0$/, "");

export const text = (x: number, y: number, content: string, attributes = ""): string =>
  `<text x="${number(x)}" y="${number(y)}" ${attributes}>${content}</text>`;

export const line = (x1: number, y1: number, x2: number, y2: number, kind: string): string =>
  `<line x1="${number(x1)}" y1="${number(y1)}" x2="${number(x2)}" y2="${number(y2)}" class="${kind}"/>`;

interface Picture {
  width: number;
  height: number;
  title: string;
  /** Besides what all pictures have, and the same once more for dark pages. */
  style: string;
  darkStyle: string;
  content: string[];
}

export const picture = ({ width, height, title, style, darkStyle, content }: Picture): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title">`,
    `<title id="title">${title}</title>`,
    `<style>
  text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2933; }
  .heading { font-size: 19px; font-weight: 600; }
  .title { font-size: 13px; font-weight: 600; }
  .soft { font-size: 12px; font-weight: 400; fill: #667280; }
  .card { fill: #ffffff; stroke: #dde2e8; }
  .grid { stroke: #e9edf1; }
  .axis { stroke: #aab4bf; }
  .curve { fill: none; stroke-width: 2; stroke-linejoin: round; }${style}
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .soft { fill: #95a1ad; }
    .card { fill: #0f141a; stroke: #2b333c; }
    .grid { stroke: #222a32; }
    .axis { stroke: #56616c; }${darkStyle}
  }
</style>`,
    `<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="12" class="card"/>`,
    ...content,
    "</svg>",
    "",
  ].join("\n");
