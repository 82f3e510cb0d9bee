import { randomBytes } from "node:crypto";
import { type Api, unexpected } from "../api.ts";
import type { Made } from "./cleanup.ts";
import { expectEqual, expectThat } from "./steps.ts";

/** Accounts of the run's own, one of each kind. */
export interface Callers {
  admin: string;
  user: string;
  agent: string;
  app: string;
  apId: string;
}

export interface Credentials {
  username: string;
  password: string;
}

export async function signIn(api: Api, { username, password }: Credentials): Promise<string> {
  const token = await api.logIn(username, password);
  const { roles } = await api.call<{ roles: string }>("GET", "/api/v1/users/me", token);
  expectThat(roles.split(",").includes("admin"), `${username} is no administrator, but ${roles}`);
  return token;
}

export async function makeCallers(api: Api, made: Made, admin: string, name: string): Promise<Callers> {
  const username = `${name}@smoke.invalid`;
  const secret = () => randomBytes(24).toString("base64url");
  const [password, agentPassword, apiKey] = [secret(), secret(), secret()];
  const make = async (kind: string, id: string, body: object) => {
    made.note(`/api/v1/${kind}/${id}`);
    await api.call("POST", `/api/v1/${kind}/`, admin, body);
  };
  await make("users", username, { username, password, roles: ["user"] });
  await make("agents", name, { ap_id: name, password: agentPassword, configuration: {} });
  const permissions = { callbacks: true, ap_ids: [name] };
  await make("third_party_apps", name, { app_name: name, api_key: apiKey, permissions });
  return {
    admin,
    user: await api.logIn(username, password),
    agent: await api.logIn(name, agentPassword, "agent"),
    app: await api.logIn(name, apiKey, "third_party_app"),
    apId: name,
  };
}

/** Nobody gets in without a token, with another's, or with nonsense. */
export async function refuses(api: Api, { user, agent }: Callers): Promise<void> {
  const cases = [
    { status: 401, method: "GET", path: "/api/v1/users/me", request: {} },
    { status: 401, method: "GET", path: "/api/v1/users/me", request: { token: `${user.slice(0, -4)}AAAA` } },
    { status: 403, method: "GET", path: "/api/v1/users/", request: { token: user } },
    { status: 403, method: "GET", path: "/api/v1/users/me", request: { token: agent } },
    { status: 422, method: "POST", path: "/api/v1/users/signup", request: { body: { username: "nobody" } } },
  ];
  for (const { status, method, path, request } of cases) {
    const answer = await api.send(method, path, request);
    if (answer.status !== status) throw unexpected(`${method} ${path}, which is to be refused with ${status},`, answer);
    if (status !== 422) continue;
    const { detail } = JSON.parse(answer.text) as { detail: object[] };
    for (const fault of detail) expectEqual("What a 422 tells", Object.keys(fault).sort(), ["loc", "msg", "type"]);
    expectThat(detail.length > 0, "A 422 tells nothing");
  }
}
