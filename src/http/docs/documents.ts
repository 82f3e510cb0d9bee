/** The documents about the API. The Worker loads them on demand to keep cold starts short: few requests need them. */

export { buildAsyncApi } from "./asyncapi.ts";
export { buildOpenApi } from "./openapi.ts";
export { docsPage, docsStyle } from "./reference-page.ts";
