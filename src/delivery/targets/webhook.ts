import { SIGNING_KEY_PREFIX } from "../../auth/secrets.ts";
import { fromBase64, toBase64 } from "../../lib/encoding.ts";
import type { Post } from "./http-post.ts";
import type { Target } from "./target.ts";

/** Webhooks according to Standard Webhooks: https://github.com/standard-webhooks/standard-webhooks */

export function createWebhookTarget(post: Post, now: () => number): Target {
  return {
    async send({ address, signingKey = "", credentials }, [{ id, event }], signal) {
      const body = JSON.stringify({ type: event.type, timestamp: event.time, data: event });
      const timestamp = String(Math.floor(now() / 1_000));
      const headers = {
        "webhook-id": id,
        "webhook-timestamp": timestamp,
        "webhook-signature": `v1,${await sign(signingKey, `${id}.${timestamp}.${body}`)}`,
      };
      return await post({ url: address, body, headers, credentials }, signal);
    },
  };
}

async function sign(signingKey: string, text: string): Promise<string> {
  const bytes = fromBase64(signingKey.slice(SIGNING_KEY_PREFIX.length));
  const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return toBase64(new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text))));
}
