import { SELF } from "cloudflare:test";

/** Requests to the Worker under test, as its users send them. */

const BASE = "https://controller.test";

export const request = (path: string, init?: RequestInit): Promise<Response> =>
  SELF.fetch(`${BASE}${path}`, { redirect: "manual", ...init });

export const postJson = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });

export const logIn = (username: string, password: string, query = "login_type=user"): Promise<Response> =>
  request(`/api/v1/token/?${query}`, { method: "POST", body: new URLSearchParams({ username, password }) });

export const bearer = (token: string): { Authorization: string } => ({ Authorization: `Bearer ${token}` });

/** A name that no other test uses. */
export const uniqueEmail = (): string => `u-${crypto.randomUUID()}@example.com`;

export const PASSWORD = "correct horse battery";

export async function signedUp(): Promise<{ username: string; token: string }> {
  const username = uniqueEmail();
  await postJson("/api/v1/users/signup", { username, password: PASSWORD });
  const { access_token } = (await (await logIn(username, PASSWORD)).json()) as { access_token: string };
  return { username, token: access_token };
}
