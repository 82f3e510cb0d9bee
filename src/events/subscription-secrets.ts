import * as z from "zod";
import type { Encryptor } from "../auth/encryptor.ts";

/** What a target needs to know and no response contains. */
const SubscriptionSecrets = z.object({
  /** The key of a webhook's signatures. */
  signingKey: z.string().optional(),
  /** User name and password of the server, separated by a colon. */
  credentials: z.string().optional(),
});
export type SubscriptionSecrets = z.output<typeof SubscriptionSecrets>;

/** Encrypts the secrets for the id of their subscription. Null if there are none. */
export async function sealSecrets(
  encryptor: Encryptor,
  id: string,
  { signingKey, credentials }: SubscriptionSecrets,
): Promise<string | null> {
  if (signingKey === undefined && credentials === undefined) return null;
  return await encryptor.seal(JSON.stringify({ signingKey, credentials }), id);
}

export async function openSecrets(
  encryptor: Encryptor,
  { id, sealedSecret }: { id: string; sealedSecret: string | null },
): Promise<SubscriptionSecrets> {
  if (sealedSecret === null) return {};
  return SubscriptionSecrets.parse(JSON.parse(await encryptor.open(sealedSecret, id)));
}
