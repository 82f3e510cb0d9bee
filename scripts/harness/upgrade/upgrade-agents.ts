import type { TestAgent } from "../accounts.ts";
import type { Api } from "../api.ts";

/** Accounts made by the interface alone, which all versions share; none knows of the others' tables. */

export async function makeAgents(api: Api, adminToken: string, count: number): Promise<TestAgent[]> {
  const agents: TestAgent[] = [];
  for (let i = 0; i < count; i++) {
    const apId = `upgrade-${i}`;
    const password = crypto.randomUUID();
    await api.call("POST", "/api/v1/agents/", adminToken, { ap_id: apId, password, configuration: {} });
    agents.push({ apId, token: await api.logIn(apId, password, "agent") });
  }
  return agents;
}
