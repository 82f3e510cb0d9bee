import { randomBytes } from "node:crypto";
import { type ApiClient, unexpected } from "../client.ts";
import { expectEqual, expectThat, type SmokeContext, type SmokeRun } from "./steps.ts";

/** What the service serves to everyone, and its accounts. */

async function checkOpenApi(client: ApiClient): Promise<void> {
  const { openapi, paths } = await client.call<{ openapi: string; paths: object }>("/openapi.json");
  expectThat(openapi.startsWith("3.1"), "/openapi.json is not an OpenAPI 3.1 document");
  expectThat("/api/v1/token/" in paths, "/openapi.json does not describe the login");
}

async function checkKeys(client: ApiClient): Promise<void> {
  const { keys } = await client.call<{ keys: { d?: string }[] }>("/.well-known/jwks.json");
  expectThat(keys.length > 0, "/.well-known/jwks.json has no key");
  const hasPrivate = keys.some(({ d }) => d !== undefined);
  expectThat(!hasPrivate, "/.well-known/jwks.json shows a private key");
}

/** Requests the page and every file that it references. */
async function checkDashboard(client: ApiClient): Promise<void> {
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

export const PUBLIC_STEPS: Record<string, (client: ApiClient) => Promise<unknown>> = {
  "the service is alive": (client) => client.call("/healthz"),
  "the stores and the broker are ready": (client) => client.call("/readyz"),
  "the API description is served": checkOpenApi,
  "the public keys are served": checkKeys,
  "the dashboard is served with its files": checkDashboard,
};

export async function logInAsAdmin(client: ApiClient, username: string, password: string): Promise<string> {
  const token = await client.logIn(username, password);
  const { roles } = await client.call<{ roles: string }>("/api/v1/users/me", { token });
  expectThat(roles.split(",").includes("admin"), `${username} is not an administrator, but ${roles}`);
  return token;
}

/** Creates a user, an agent and an app, and logs in as each of them. */
export async function createCallers(run: SmokeRun, token: string): Promise<SmokeContext> {
  const { client, created, name } = run;
  const username = `${name}@smoke.invalid`;
  const secret = () => randomBytes(24).toString("base64url");
  const [password, agentPassword, apiKey] = [secret(), secret(), secret()];
  const create = async (kind: string, id: string, body: object) => {
    created.add(`/api/v1/${kind}/${id}`);
    await client.call(`/api/v1/${kind}/`, { token, body });
  };
  await create("users", username, { username, password, roles: ["user"] });
  await create("agents", name, { ap_id: name, password: agentPassword, configuration: {} });
  const permissions = { callbacks: true, ap_ids: [name] };
  await create("third_party_apps", name, { app_name: name, api_key: apiKey, permissions });
  const user = await client.logIn(username, password);
  const agent = await client.logIn(name, agentPassword, "agent");
  const app = await client.logIn(name, apiKey, "third_party_app");
  return { ...run, user, agent, app };
}

/** Sends requests without a token, with a forged one, with one of another caller, and with an invalid body. */
export async function checkRejections({ client, user, agent }: SmokeContext): Promise<void> {
  const cases = [
    { status: 401, path: "/api/v1/users/me", request: {} },
    { status: 401, path: "/api/v1/users/me", request: { token: `${user.slice(0, -4)}AAAA` } },
    { status: 403, path: "/api/v1/users/", request: { token: user } },
    { status: 403, path: "/api/v1/users/me", request: { token: agent } },
    { status: 422, path: "/api/v1/users/signup", request: { body: { username: "invalid" } } },
  ];
  for (const { status, path, request } of cases) {
    const response = await client.request(path, request);
    if (response.status !== status) throw unexpected(`${path}, which must be rejected with ${status}`, response);
    if (status !== 422) continue;
    const { detail } = JSON.parse(response.text) as { detail: object[] };
    for (const error of detail)
      expectEqual("The fields of a 422 error", Object.keys(error).sort(), ["loc", "msg", "type"]);
    expectThat(detail.length > 0, "A 422 has no field errors");
  }
}
