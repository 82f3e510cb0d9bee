import { type Api, unexpected } from "../api.ts";
import { expectThat } from "./steps.ts";

/** What the service shows to everybody. */

export async function isReady(api: Api): Promise<void> {
  const answer = await api.send("GET", "/readyz");
  if (answer.status !== 200) throw unexpected("GET /readyz", answer);
}

export async function describesItself(api: Api): Promise<void> {
  const { openapi, paths } = await api.call<{ openapi: string; paths: Record<string, unknown> }>(
    "GET",
    "/openapi.json",
  );
  expectThat(openapi.startsWith("3.1"), "/openapi.json is no OpenAPI 3.1 document");
  expectThat("/api/v1/token/" in paths, "/openapi.json does not know how to log in");
}

export async function showsKeys(api: Api): Promise<void> {
  const { keys } = await api.call<{ keys: { kid: string; d?: string }[] }>("GET", "/.well-known/jwks.json");
  expectThat(keys.length > 0, "/.well-known/jwks.json shows no key");
  expectThat(
    keys.every((key) => key.d === undefined),
    "/.well-known/jwks.json shows a private key",
  );
}

/** The page and every file that it names. */
export async function showsDashboard(api: Api): Promise<number> {
  const page = await api.send("GET", "/");
  if (page.status !== 200) throw unexpected("GET /", page);
  const files = [...page.text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, file = ""]) => file);
  expectThat(files.length > 0, "The page of the dashboard names no file");
  for (const file of files) {
    const answer = await api.send("GET", file);
    if (answer.status !== 200 || answer.text === "") throw unexpected(`GET ${file}`, answer);
    const type = answer.headers.get("Content-Type");
    expectThat(type !== null && !type.startsWith("text/html"), `${file} is of the type ${type}`);
  }
  return files.length;
}
