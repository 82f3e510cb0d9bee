import { and, eq } from "drizzle-orm";
import { apps } from "../../src/accounts/account-tables.ts";
import { createEncryptor, type Encryptor } from "../../src/auth/encryptor.ts";
import { outbox } from "../../src/broker/outbox-table.ts";
import { createDatabase, type DatabaseOptions } from "../../src/storage/libsql.ts";

/** Seals everything in the database that is sealed with a former key once more, with the present one. Answers how much that was. */
export async function reseal(options: DatabaseOptions, keys: readonly string[]): Promise<number> {
  const database = createDatabase(options);
  const all = createEncryptor(keys);
  const present = createEncryptor(keys.slice(0, 1));
  let count = 0;
  for (const { id, sealedApiKey } of await database.select().from(apps)) {
    const sealed = await resealed(sealedApiKey, id, all, present);
    if (sealed === undefined) continue;
    // Only if nobody has changed it meanwhile: whoever has, sealed it with the present key.
    await database
      .update(apps)
      .set({ sealedApiKey: sealed })
      .where(and(eq(apps.id, id), eq(apps.sealedApiKey, sealedApiKey)));
    count++;
  }
  for (const { id, jobNumber, payload } of await database.select().from(outbox)) {
    const sealed = await resealed(payload, jobNumber, all, present);
    if (sealed === undefined) continue;
    await database.update(outbox).set({ payload: sealed }).where(eq(outbox.id, id));
    count++;
  }
  return count;
}

/** Nothing where it is sealed with the present key. */
async function resealed(
  sealed: string,
  belongsTo: string,
  all: Encryptor,
  present: Encryptor,
): Promise<string | undefined> {
  const isPresent = await present.open(sealed, belongsTo).then(
    () => true,
    () => false,
  );
  return isPresent ? undefined : await present.seal(await all.open(sealed, belongsTo), belongsTo);
}
