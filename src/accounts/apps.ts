import type { Encryptor } from "../auth/encryptor.ts";
import type { Actor } from "../auth/identity.ts";
import { authorize, authorizeAccount } from "../auth/permissions.ts";
import { NotFound } from "../lib/errors.ts";
import type { ThirdPartyApp, ThirdPartyAppCreate, ThirdPartyAppUpdate } from "../schemas/accounts/app.ts";
import type { Grants } from "../schemas/accounts/grants.ts";
import type { Page } from "../schemas/primitives.ts";
import type { AppRow, AppStore } from "./app-store.ts";
import { checkGrants } from "./grants.ts";
import type { GroupStore } from "./group-store.ts";
import type { JobRechecks, OwnedJobs } from "./owned-jobs.ts";

export interface Apps {
  list(actor: Actor, page: Page): Promise<ThirdPartyApp[]>;
  create(actor: Actor, app: ThirdPartyAppCreate): Promise<ThirdPartyApp>;
  read(actor: Actor, appName: string): Promise<ThirdPartyApp>;
  update(actor: Actor, appName: string, changes: ThirdPartyAppUpdate): Promise<ThirdPartyApp>;
  delete(actor: Actor, appName: string): Promise<void>;
  readGrants(actor: Actor, appName: string): Promise<Grants>;
  changeGrants(actor: Actor, appName: string, grants: Grants): Promise<Grants>;
}

export interface AppsOptions {
  store: AppStore;
  apiKeys: Encryptor;
  groups: Pick<GroupStore, "selectors">;
  ownedJobs: OwnedJobs;
  rechecks: JobRechecks;
}

export function createApps({ store, apiKeys, groups, ownedJobs, rechecks }: AppsOptions): Apps {
  const toApp = async ({ id, appName, sealedApiKey, permissions }: AppRow): Promise<ThirdPartyApp> => ({
    id,
    app_name: appName,
    api_key: await apiKeys.open(sealedApiKey, id),
    permissions,
  });
  const find = async (appName: string): Promise<AppRow> => {
    const row = await store.find(appName);
    if (row === undefined) throw new NotFound("Third-party app");
    return row;
  };

  return {
    async list(actor, page) {
      authorize(actor, "apps.list");
      return await Promise.all((await store.list(page)).map(toApp));
    },

    async create(actor, { app_name, api_key, permissions }) {
      authorize(actor, "apps.create");
      const id = crypto.randomUUID();
      const sealedApiKey = await apiKeys.seal(api_key, id);
      return await toApp(await store.insert({ id, appName: app_name, sealedApiKey, permissions }, actor));
    },

    async read(actor, appName) {
      authorizeAccount(actor, "apps.read", appName);
      return await toApp(await find(appName));
    },

    async update(actor, appName, { api_key, permissions }) {
      authorizeAccount(actor, "apps.update", appName);
      // Reads the row first: the encryption of the key depends on the app's id.
      const row = await find(appName);
      if (!api_key && !permissions) return await toApp(row);
      const sealedApiKey = api_key ? await apiKeys.seal(api_key, row.id) : undefined;
      const changed = await store.update(row, { sealedApiKey, permissions: permissions ?? undefined }, actor);
      rechecks.recheckJobsOf({ ownerId: row.id });
      return await toApp(changed);
    },

    async delete(actor, appName) {
      authorizeAccount(actor, "apps.delete", appName);
      ownedJobs.closeStreams(await store.delete(appName, actor, ownedJobs.end));
    },

    async readGrants(actor, appName) {
      authorizeAccount(actor, "apps.read_grants", appName);
      const { grants } = await find(appName);
      return { grants };
    },

    async changeGrants(actor, appName, { grants }) {
      authorizeAccount(actor, "apps.change_grants", appName);
      const row = await find(appName);
      await checkGrants(groups, grants);
      const changed = await store.update(row, { grants }, actor);
      rechecks.recheckJobsOf({ ownerId: row.id });
      return { grants: changed.grants };
    },
  };
}
