import { html } from "hono/html";
import type { HtmlEscapedString } from "hono/utils/html";
import type * as z from "zod";
import type { OpenApiDocument, OpenApiOperation } from "./openapi.ts";

/** The API reference: the OpenAPI document as one page for people, without scripts or external resources. */

type JsonSchema = z.core.JSONSchema.JSONSchema;
type Html = HtmlEscapedString | Promise<HtmlEscapedString>;

interface Entry {
  method: string;
  path: string;
  operation: OpenApiOperation;
}

export function docsPage({ info, paths, components }: OpenApiDocument): string {
  const entries = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Entry => ({ method: method.toUpperCase(), path, operation })),
  );
  const byTag = Map.groupBy(entries, ({ operation }) => operation.tags[0] ?? "");
  const schemas = Object.entries(components.schemas);

  return String(html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${info.title} – API reference</title>
    <link rel="stylesheet" href="/docs/style.css">
  </head>
  <body>
    <nav aria-label="Operations">
      <p class="title">${info.title}</p>
      <p>Version ${info.version} · <a href="/openapi.json">openapi.json</a> · <a href="/asyncapi.json">asyncapi.json</a></p>
      ${[...byTag].map(
        ([tag, group]) =>
          html`<h2>${tag}</h2><ul>${group.map(
            ({ method, path, operation }) =>
              html`<li><a href="#${operation.operationId}" title="${operation.summary}">${badge(method)} ${path}</a></li>`,
          )}</ul>`,
      )}
      <h2>Schemas</h2>
      <ul>${schemas.map(([name]) => html`<li><a href="#${name}">${name}</a></li>`)}</ul>
    </nav>
    <main>
      <h1>API reference</h1>
      <p>${info.description}</p>
      <p>
        Log in with <a href="#tokenCreate"><code>POST /api/v1/token/</code></a> and send the token with every request:
        <code>Authorization: Bearer …</code>. Every response has a header <code>X-Request-Id</code>; quote it when you report an error.
        The messages on the WebSockets of jobs are described in <a href="/asyncapi.json">asyncapi.json</a>.
      </p>
      ${[...byTag].map(([tag, group]) => html`<h2>${tag}</h2>${group.map(operationSection)}`)}
      <h2>Schemas</h2>
      ${schemas.map(([name, schema]) => html`<section id="${name}"><h3>${name}</h3>${fields(schema)}</section>`)}
    </main>
  </body>
</html>`);
}

function operationSection({ method, path, operation }: Entry): Html {
  const { operationId, summary, description, security, parameters = [], requestBody, responses } = operation;
  const body = Object.entries(requestBody?.content ?? {});
  return html`<section id="${operationId}">
    <h3>${badge(method)} <code>${path}</code></h3>
    <p><strong>${summary}</strong>${security.length > 0 ? html` <span class="lock">bearer token</span>` : ""}</p>
    ${description.split("\n\n").map((paragraph) => (paragraph === "" ? "" : html`<p>${code(paragraph)}</p>`))}
    ${
      parameters.length > 0
        ? html`<h4>Parameters</h4>${table(
            parameters.map(({ name, in: place, required, description: text = "", schema }) => [
              html`<code>${name}</code>`,
              html`${place}${required ? ", required" : ""}`,
              type(schema),
              code(text),
            ]),
          )}`
        : ""
    }
    ${
      body.length > 0
        ? html`<h4>Body <small>${body.map(([media]) => media).join(" or ")}</small></h4><p>${type(body[0]?.[1].schema ?? {})}</p>`
        : ""
    }
    <h4>Responses</h4>
    ${table(
      Object.entries(responses).map(([status, response]) => [
        html`<code>${status}</code>`,
        response.description,
        type(Object.values(response.content ?? {})[0]?.schema ?? {}),
      ]),
    )}
  </section>`;
}

const badge = (method: string): Html => html`<span class="method ${method.toLowerCase()}">${method}</span>`;

const table = (rows: (Html | string)[][]): Html =>
  html`<table><tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody></table>`;

/** Renders text, with \`quoted\` words as code. */
const code = (text: string): Html =>
  html`${text.split("`").map((text, index) => (index % 2 === 1 ? html`<code>${text}</code>` : text))}`;

function fields(schema: JsonSchema): Html {
  const required = schema.required ?? [];
  const rows = Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const node = typeof property === "object" ? property : {};
    return [
      html`<code>${name}</code>`,
      type(node),
      required.includes(name) ? "required" : "",
      code(node.description ?? ""),
    ];
  });
  return rows.length > 0 ? table(rows) : html`<p>${type(schema)}</p>`;
}

function type(schema: JsonSchema): Html {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split("/").at(-1) ?? "";
    return html`<a href="#${name}">${name}</a>`;
  }
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`;
  if (schema.enum !== undefined)
    return html`${join(
      schema.enum.map((value) => html`<code>${JSON.stringify(value)}</code>`),
      " | ",
    )}`;
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives !== undefined)
    return html`${join(
      alternatives.map((node) => type(asSchema(node))),
      " | ",
    )}`;
  if (schema.type === "array") return html`array of ${type(asSchema(schema.items))}`;
  if (schema.type === "object" && schema.properties !== undefined) {
    return html`object {${join(
      Object.entries(schema.properties).map(([name, node]) => html`<code>${name}</code>: ${type(asSchema(node))}`),
      ", ",
    )}}`;
  }
  const bounds = [
    schema.format,
    schema.minLength !== undefined && `at least ${schema.minLength} characters`,
    schema.maxLength !== undefined && `at most ${schema.maxLength} characters`,
    schema.exclusiveMinimum !== undefined && `> ${schema.exclusiveMinimum}`,
    schema.maximum !== undefined && schema.maximum < Number.MAX_SAFE_INTEGER && `≤ ${schema.maximum}`,
    schema.default !== undefined && schema.default !== "" && `default ${JSON.stringify(schema.default)}`,
  ].filter((text) => typeof text === "string");
  return html`${String(schema.type ?? "any")}${bounds.length > 0 ? ` (${bounds.join(", ")})` : ""}`;
}

const asSchema = (node: unknown): JsonSchema => (typeof node === "object" && node !== null ? (node as JsonSchema) : {});

const join = (items: Html[], separator: string): (Html | string)[] =>
  items.flatMap((item, index) => (index === 0 ? [item] : [separator, item]));

export const docsStyle = `
:root { color-scheme: light dark; --line: light-dark(#d8dee6, #333b46); --soft: light-dark(#f5f7f9, #171c22);
  --ink: light-dark(#1b232d, #e3e8ee); --dim: light-dark(#566373, #97a3b2); --link: light-dark(#0b5cad, #74b3f5); }
* { box-sizing: border-box; }
body { margin: 0; display: grid; grid-template-columns: 21rem minmax(0, 1fr); color: var(--ink);
  background: light-dark(#fff, #0f1317); font: 16px/1.55 system-ui, sans-serif; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
code { font: 0.9em ui-monospace, monospace; overflow-wrap: anywhere; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.25rem; background: var(--soft);
  border-right: 1px solid var(--line); font-size: 0.875rem; }
nav .title { font-weight: 650; font-size: 1rem; margin: 0; } nav p { margin: 0.2rem 0; color: var(--dim); }
nav .title { color: var(--ink); }
nav h2 { margin: 1.2rem 0 0.3rem; font-size: 0.75rem; letter-spacing: 0.06em; text-transform: uppercase; color: var(--dim); }
nav ul { list-style: none; margin: 0; padding: 0; } nav li a { display: block; padding: 0.15rem 0; overflow-wrap: anywhere; }
main { padding: 1.5rem 2.5rem 6rem; max-width: 60rem; }
main h2 { margin-top: 2.5rem; } h3 { margin: 0; font-size: 1.05rem; } h4 { margin: 1rem 0 0.3rem; font-size: 0.875rem; color: var(--dim); }
section { margin: 1rem 0; padding: 1rem 1.25rem; border: 1px solid var(--line); border-radius: 8px; scroll-margin-top: 1rem; }
section:target { border-color: var(--link); }
section p { margin: 0.4rem 0; }
table { width: 100%; border-collapse: collapse; font-size: 0.9rem; } td { padding: 0.35rem 0.75rem 0.35rem 0; vertical-align: top; border-top: 1px solid var(--line); }
.method { display: inline-block; min-width: 3.4em; padding: 0 0.4em; border-radius: 4px; text-align: center; font: 600 0.72rem/1.7 ui-monospace, monospace; color: #fff; }
.get { background: #1d6fb8; } .post { background: #21794a; } .put { background: #925c00; } .delete { background: #b3261e; }
.lock { padding: 0 0.5em; border: 1px solid var(--line); border-radius: 999px; font-size: 0.75rem; color: var(--dim); }
@media (max-width: 50rem) { body { display: block; } nav { position: static; height: auto; border-right: 0; } main { padding: 1rem; } }
`;
