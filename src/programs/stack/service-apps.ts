import { createAppStore } from "../../accounts/app-store.ts";
import { createEncryptor } from "../../auth/encryptor.ts";
import type { Config } from "../../env.ts";
import type { AppPermission } from "../../schemas/accounts/app.ts";
import { createDatabase } from "../../storage/libsql.ts";

const ACTOR = { kind: "console", name: "start", requestId: "" } as const;
const NO_PERMISSIONS = { agents: false, data: false, commands: false, emulator: false };

/** Creates the app account of a component with exactly these permissions, or sets the API key of an existing one. */
export async function ensureServiceApp(
  config: Config,
  appName: string,
  apiKey: string,
  permissions: Partial<Record<AppPermission, true>>,
): Promise<void> {
  const apps = createAppStore(createDatabase({ url: config.LIBSQL_URL, authToken: config.LIBSQL_AUTH_TOKEN }));
  const apiKeys = createEncryptor(config.ENCRYPTION_KEY);
  const existing = await apps.find(appName);
  if (existing === undefined) {
    const id = crypto.randomUUID();
    const sealedApiKey = await apiKeys.seal(apiKey, id);
    await apps.insert({ id, appName, sealedApiKey, permissions: { ...NO_PERMISSIONS, ...permissions } }, ACTOR);
  } else if ((await apiKeys.open(existing.sealedApiKey, existing.id).catch(() => undefined)) !== apiKey) {
    await apps.update(existing, { sealedApiKey: await apiKeys.seal(apiKey, existing.id) }, ACTOR);
  }
}
