import { and, eq } from "drizzle-orm";
import { apps } from "../../src/accounts/account-tables.ts";
import { createEncryptor, type Encryptor } from "../../src/auth/encryptor.ts";
import { outbox } from "../../src/broker/outbox-table.ts";
import { createDatabase, type DatabaseOptions } from "../../src/storage/libsql.ts";

/** Decrypts everything that an old key has encrypted, and encrypts it again with the first key. Returns the number of changed rows. */
export async function reencryptSecrets(options: DatabaseOptions, keys: readonly string[]): Promise<number> {
  const database = createDatabase(options);
  const all = createEncryptor(keys);
  const current = createEncryptor(keys.slice(0, 1));
  let count = 0;
  for (const { id, sealedApiKey } of await database.select().from(apps)) {
    const sealed = await reencrypt(sealedApiKey, id, all, current);
    if (sealed === undefined) continue;
    // Skips an API key that the service has replaced in the meantime: it used the current key.
    await database
      .update(apps)
      .set({ sealedApiKey: sealed })
      .where(and(eq(apps.id, id), eq(apps.sealedApiKey, sealedApiKey)));
    count++;
  }
  for (const { id, jobNumber, payload } of await database.select().from(outbox)) {
    const sealed = await reencrypt(payload, jobNumber, all, current);
    if (sealed === undefined) continue;
    await database.update(outbox).set({ payload: sealed }).where(eq(outbox.id, id));
    count++;
  }
  return count;
}

/** Returns undefined if the current key already encrypts the text. */
async function reencrypt(
  sealed: string,
  context: string,
  all: Encryptor,
  current: Encryptor,
): Promise<string | undefined> {
  const isCurrent = await current.open(sealed, context).then(
    () => true,
    () => false,
  );
  return isCurrent ? undefined : await current.seal(await all.open(sealed, context), context);
}
