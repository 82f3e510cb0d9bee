const number = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const precise = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 2 });

export const countText = (count: number): string => number.format(count);

/** So many of something: "1 row", "2,000 rows". */
export const countOf = (count: number, one: string, many = `${one}s`): string =>
  `${countText(count)} ${count === 1 ? one : many}`;

/** "3.4 MB". */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  const [size, unit] = bytes < 1_000_000 ? [bytes / 1_000, "KB"] : [bytes / 1_000_000, "MB"];
  return `${(size < 10 ? precise : number).format(size)} ${unit}`;
}
