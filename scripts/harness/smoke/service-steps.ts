import { type ApiClient, unexpected } from "../client.ts";
import { expectThat } from "./steps.ts";

/** What the service serves to everyone. */

export async function checkReady(client: ApiClient): Promise<void> {
  const response = await client.request("/readyz");
  if (response.status !== 200) throw unexpected("GET /readyz", response);
}

export async function checkOpenApi(client: ApiClient): Promise<void> {
  const { openapi, paths } = await client.call<{ openapi: string; paths: object }>("/openapi.json");
  expectThat(openapi.startsWith("3.1"), "/openapi.json is not an OpenAPI 3.1 document");
  expectThat("/api/v1/token/" in paths, "/openapi.json does not describe the login");
}

export async function checkKeys(client: ApiClient): Promise<void> {
  const { keys } = await client.call<{ keys: { d?: string }[] }>("/.well-known/jwks.json");
  expectThat(keys.length > 0, "/.well-known/jwks.json has no key");
  const hasPrivate = keys.some(({ d }) => d !== undefined);
  expectThat(!hasPrivate, "/.well-known/jwks.json shows a private key");
}

/** Requests the page and every file that it references. */
export async function checkDashboard(client: ApiClient): Promise<void> {
  const page = await client.request("/");
  if (page.status !== 200) throw unexpected("GET /", page);
  const files = [...page.text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, file = ""]) => file);
  expectThat(files.length > 0, "The page of the dashboard references no file");
  for (const file of files) {
    const response = await client.request(file);
    if (response.status !== 200 || response.text === "") throw unexpected(`GET ${file}`, response);
    const type = response.headers.get("Content-Type");
    expectThat(type !== null && !type.startsWith("text/html"), `${file} has the type ${type}`);
  }
}
