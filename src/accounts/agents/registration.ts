import type { Actor } from "../../auth/identity.ts";
import { authorize } from "../../auth/permissions.ts";
import { randomSecret, type SecretHasher } from "../../auth/secrets.ts";
import { Duplicate, NotAllowed } from "../../lib/errors.ts";
import { isEmulated } from "../../schemas/agent.ts";
import type { AgentStore } from "./agent-store.ts";
import { rejectOutside } from "./agents.ts";

/**
 * Registers an agent with a valid name, which an app writes metrics for. Returns whether it exists now and belongs to the app's scope. The agent cannot log in
 * until a manager gives it a password.
 */
export type RegisterAgent = (actor: Actor, apId: string) => Promise<boolean>;

export function createRegisterAgent(store: Pick<AgentStore, "insert">, secretHasher: SecretHasher): RegisterAgent {
  return async (actor, apId) => {
    authorize(actor, "agents.register");
    // The emulator deletes agents with such names.
    if (isEmulated(apId)) return false;
    try {
      rejectOutside(actor, "agents.register", { apId, customLabels: {}, configuration: {}, owner: null });
      const credential = await secretHasher.hash(randomSecret());
      await store.insert({ apId, credentialKind: "hmac", credential, configuration: {} }, actor);
      return true;
    } catch (error) {
      // Another request has registered it. If it is in the scope, the next request finds it.
      if (error instanceof Duplicate || error instanceof NotAllowed) return false;
      throw error;
    }
  };
}
