import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { signalGroup } from "../../../src/programs/shared/system.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { makeAgents, makeUser } from "../accounts.ts";
import type { Target } from "../client.ts";

/** The login of an app that may write for all agents. */
export interface AppLogin {
  name: string;
  key: string;
}

/** Creates agents, and an app that writes for them. The names of all begin with the returned prefix. */
export async function createCollector({ client, dataDir }: Target, name: string, agentCount: number, permissions = {}) {
  const prefix = `collector-${name.toLowerCase().replace(" ", "-")}-${Date.now()}`;
  const agents = await makeAgents(dataDir, prefix, agentCount);
  const { token } = await makeUser(dataDir, `${prefix}@example.com`, "none", ["admin"]);
  const login: AppLogin = { name: prefix, key: crypto.randomUUID() };
  const body = { app_name: login.name, api_key: login.key, permissions: { write: true, ...permissions } };
  await client.call("/api/v1/third_party_apps/", { token, body });
  return { prefix, apIds: agents.map(({ apId }) => apId), login };
}

/** Cleans up when the returned function is called, or when the command ends before that, such as by Ctrl-C. */
export function cleanUpAtExit(cleanUp: () => void): () => void {
  const once = () => {
    process.off("exit", once);
    cleanUp();
  };
  process.once("exit", once);
  return once;
}

/** Returns a folder for a program and a supervisor that runs it. Both end with `remove`, or with the command, such as by Ctrl-C. */
export function createProgramHome(name: string) {
  const folder = mkdtempSync(join(tmpdir(), `${name}-`));
  const supervisor = new Supervisor();
  const remove = cleanUpAtExit(() => {
    for (const pid of Object.values(supervisor.pids)) signalGroup(pid, "SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });
  return { folder, supervisor, remove };
}
