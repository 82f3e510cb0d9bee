import type { Actor } from "../../auth/identity.ts";
import { authorize } from "../../auth/permissions.ts";
import { randomSecret, type SecretHasher } from "../../auth/secrets.ts";
import { Duplicate, NotAllowed } from "../../lib/errors.ts";
import { isEmulated } from "../../schemas/agent.ts";
import type { AgentStore } from "./agent-store.ts";
import { rejectOutside } from "./agents.ts";

/** Registers agents for which an app writes metrics. Such an agent cannot log in until a manager gives it a password. */
export interface Registration {
  /** Returns whether the app may register an agent of that name. */
  isAllowed(actor: Actor, apId: string): boolean;
  /** Registers an agent with a valid name that is allowed. Returns false if it exists. */
  register(actor: Actor, apId: string): Promise<boolean>;
}

export function createRegistration(store: Pick<AgentStore, "insert">, secretHasher: SecretHasher): Registration {
  return {
    isAllowed(actor, apId) {
      // The emulator deletes agents with such names.
      if (isEmulated(apId)) return false;
      try {
        rejectOutside(actor, "agents.register", { apId, customLabels: {}, configuration: {}, owner: null });
        return true;
      } catch (error) {
        if (error instanceof NotAllowed) return false;
        throw error;
      }
    },

    async register(actor, apId) {
      authorize(actor, "agents.register");
      const credential = await secretHasher.hash(randomSecret());
      try {
        await store.insert({ apId, credentialKind: "hmac", credential, configuration: {} }, actor);
        return true;
      } catch (error) {
        if (error instanceof Duplicate) return false;
        throw error;
      }
    },
  };
}
