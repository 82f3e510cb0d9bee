import { isInScope } from "../../auth/agent-scope.ts";
import type { Actor } from "../../auth/identity.ts";
import { type Action, agentScopeOf, authorize } from "../../auth/permissions.ts";
import { randomSecret, sha256Hex } from "../../auth/secrets.ts";
import { Conflict, Invalid, NotAllowed, NotFound } from "../../lib/errors.ts";
import type { Labels } from "../../lib/selectors.ts";
import type { EnrolmentToken, EnrolmentTokenCreate, NewEnrolmentToken } from "../../schemas/enrolment-token.ts";
import type { Page } from "../../schemas/primitives.ts";
import { labelsOf } from "../labels.ts";
import type { EnrolmentSettings } from "./enrolment.ts";
import type { EnrolmentTokenRow, EnrolmentTokenStore } from "./enrolment-token-store.ts";

/** Tokens with which access points enrol themselves. A manager has access to tokens whose labels are in the scope of its grants. */
export interface EnrolmentTokens {
  /** Returns the token of the settings first, then the newest. */
  list(actor: Actor, page: Page): Promise<EnrolmentToken[]>;
  /** Only this result contains the token itself. */
  create(actor: Actor, token: EnrolmentTokenCreate): Promise<NewEnrolmentToken>;
  revoke(actor: Actor, id: string): Promise<void>;
}

export interface EnrolmentTokensOptions {
  store: EnrolmentTokenStore;
  settings: EnrolmentSettings;
  now?: () => number;
}

/** Begins every token, except the one in the settings. */
export const TOKEN_PREFIX = "enrol_";
/** Characters by which people recognise a token. The other 37 stay secret. */
const SHOWN_CHARACTERS = 12;
const SETTINGS_ID = "settings";
/** The name of the setting, instead of its first characters: they may be most of a token that a person chose. */
const SETTING = "ENROLMENT_TOKEN";

export function createEnrolmentTokens({ store, settings, now = Date.now }: EnrolmentTokensOptions): EnrolmentTokens {
  const ofSettings = async (): Promise<EnrolmentToken[]> => {
    const { token, maxUses = null, expiresAtMs } = settings;
    if (token === undefined) return [];
    return [
      {
        id: SETTINGS_ID,
        prefix: SETTING,
        description: "The token of the settings",
        labels: {},
        max_uses: maxUses,
        uses: await store.countUses(await sha256Hex(token)),
        expires_at: expiresAtMs === undefined ? null : new Date(expiresAtMs).toISOString(),
        created_by: SETTINGS_ID,
        created_at: null,
        revoked_at: null,
      },
    ];
  };

  return {
    async list(actor, { limit, offset }) {
      authorize(actor, "enrolment_tokens.list");
      const all = [...(await ofSettings()), ...(await store.list()).map(toToken)];
      const visible = all.filter(({ labels }) => isManaged(actor, "enrolment_tokens.list", labels));
      return visible.slice(offset, limit === undefined ? undefined : offset + limit);
    },

    async create(actor, { description, labels, max_uses: maxUses, expires_at: expiresAtMs }) {
      authorize(actor, "enrolment_tokens.create");
      if (!isManaged(actor, "enrolment_tokens.create", labels)) {
        throw new NotAllowed("Your grants do not include agents with these labels");
      }
      if (expiresAtMs !== null && expiresAtMs <= now()) {
        throw new Invalid([{ loc: ["expires_at"], type: "value_error", msg: "Value error, must be in the future" }]);
      }
      const token = `${TOKEN_PREFIX}${randomSecret()}`;
      const expiresAt = expiresAtMs === null ? null : new Date(expiresAtMs);
      const prefix = token.slice(0, SHOWN_CHARACTERS);
      const row = { tokenHash: await sha256Hex(token), prefix, description, labels, maxUses, expiresAt };
      return { ...toToken(await store.insert(row, actor)), token };
    },

    async revoke(actor, id) {
      authorize(actor, "enrolment_tokens.revoke");
      const [row, [setting]] = await Promise.all([store.find(id), id === SETTINGS_ID ? ofSettings() : []]);
      const labels = row?.labels ?? setting?.labels;
      // A token outside the scope must look like one that does not exist.
      if (labels === undefined || !isManaged(actor, "enrolment_tokens.revoke", labels)) {
        throw new NotFound("Enrolment token");
      }
      if (row === undefined) throw new Conflict(`This token is in the settings. Remove ${SETTING} there`);
      await store.revoke(row, actor);
    },
  };
}

/**
 * Returns whether the caller manages the agents that a token with these labels enrols. Their names and technologies are not known yet, so
 * an app that is limited to some names manages none of them.
 */
function isManaged(actor: Actor, action: Action, customLabels: Labels): boolean {
  const labels = labelsOf({ apId: "", customLabels, accessPointType: undefined, owner: null });
  return isInScope(agentScopeOf(actor, action), { apId: "", labels, ownerId: null });
}

const toToken = (row: EnrolmentTokenRow): EnrolmentToken => ({
  id: row.id,
  prefix: row.prefix,
  description: row.description,
  labels: row.labels,
  max_uses: row.maxUses,
  uses: row.uses,
  expires_at: row.expiresAt?.toISOString() ?? null,
  created_by: row.createdBy,
  created_at: row.createdAt.toISOString(),
  revoked_at: row.revokedAt?.toISOString() ?? null,
});
