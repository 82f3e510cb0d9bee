import { randomBytes } from "node:crypto";
import { type ApiClient, unexpected } from "../client.ts";
import type { SmokeContext } from "./smoke.ts";
import { expectEqual, expectThat } from "./steps.ts";

/** Tokens of the accounts that the run created, one of each kind. */
export interface Callers {
  user: string;
  agent: string;
  app: string;
  apId: string;
}

export interface Credentials {
  username: string;
  password: string;
}

export async function logInAsAdmin(client: ApiClient, { username, password }: Credentials): Promise<string> {
  const token = await client.logIn(username, password);
  const { roles } = await client.call<{ roles: string }>("/api/v1/users/me", { token });
  expectThat(roles.split(",").includes("admin"), `${username} is not an administrator, but ${roles}`);
  return token;
}

export async function createCallers({ client, created }: SmokeContext, token: string, name: string): Promise<Callers> {
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
  return {
    user: await client.logIn(username, password),
    agent: await client.logIn(name, agentPassword, "agent"),
    app: await client.logIn(name, apiKey, "third_party_app"),
    apId: name,
  };
}

/** Sends requests without a token, with a forged one, with one of another caller, and with an invalid body. */
export async function checkRejections(client: ApiClient, { user, agent }: Callers): Promise<void> {
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
