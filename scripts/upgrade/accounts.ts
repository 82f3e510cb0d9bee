import type { TrialAgent } from "../trial/accounts.ts";

/** Accounts made by the interface alone, which all versions share; none knows of the others' tables. */

export interface Person {
  username: string;
  password: string;
}

export async function logIn(url: string, type: "user" | "agent", { username, password }: Person): Promise<string> {
  const body = new URLSearchParams({ username, password });
  const response = await fetch(`${url}/api/v1/token/?login_type=${type}`, { method: "POST", body });
  if (!response.ok) throw new Error(`A login was answered with ${response.status}`);
  return ((await response.json()) as { access_token: string }).access_token;
}

export async function makeAgents(url: string, admin: Person, count: number): Promise<TrialAgent[]> {
  const headers = { Authorization: `Bearer ${await logIn(url, "user", admin)}`, "Content-Type": "application/json" };
  const agents: TrialAgent[] = [];
  for (let i = 0; i < count; i++) {
    const apId = `upgrade-${i}`;
    const password = crypto.randomUUID();
    const body = JSON.stringify({ ap_id: apId, password, configuration: {} });
    const response = await fetch(`${url}/api/v1/agents/`, { method: "POST", headers, body });
    if (!response.ok) throw new Error(`A new agent was answered with ${response.status}`);
    agents.push({ apId, token: await logIn(url, "agent", { username: apId, password }) });
  }
  return agents;
}
