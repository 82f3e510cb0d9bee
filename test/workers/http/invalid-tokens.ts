import { generateKeyPair, importJWK, type JWK, SignJWT } from "jose";
import { settings, uniqueEmail } from "../support.ts";

/** Returns tokens for `subject`, each with one defect. `good` is a valid token. */
export async function invalidTokens(subject: string, good: string): Promise<[string, string][]> {
  const [signingKey] = JSON.parse(settings.JWT_KEYS ?? "") as (JWK & { kid: string })[];
  if (signingKey === undefined) throw new Error("no key");
  const [header = "", claims = "", signature = ""] = good.split(".");
  const { ver } = JSON.parse(atob(claims.replaceAll("-", "+").replaceAll("_", "/"))) as { ver: number };
  const issuer = "multi-access-network-controller";
  const sign = async (
    key: CryptoKey | Uint8Array,
    protectedHeader: { alg: string; kid?: string },
    change: object = {},
  ) =>
    await new SignJWT({
      login_type: "user",
      roles: ["admin"],
      scope: "users:manage",
      ver,
      jti: "x",
      sub: subject,
      ...change,
    })
      .setProtectedHeader(protectedHeader)
      .setIssuer(issuer)
      .setAudience(issuer)
      .setIssuedAt()
      .setExpirationTime("1h")
      .sign(key);
  const ours = await importJWK(signingKey, "ES256");
  const { privateKey: theirs } = await generateKeyPair("ES256");
  const { d: _, ...publicKey } = signingKey;
  const kid = signingKey.kid;
  const now = Math.floor(Date.now() / 1000);
  const expired = new SignJWT({ login_type: "user", roles: ["admin"], scope: "users:manage", ver, jti: "x" })
    .setProtectedHeader({ alg: "ES256", kid })
    .setSubject(subject)
    .setIssuer(issuer)
    .setAudience(issuer)
    .setIssuedAt(now - 7200)
    .setExpirationTime(now - 3600);
  return [
    ["malformed", "a.b.c"],
    ["not a JWT", "token"],
    ["expired", await expired.sign(ours)],
    ["not valid yet", await sign(ours, { alg: "ES256", kid }, { nbf: now + 3600 })],
    ["wrong signature", `${header}.${claims}.${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`],
    ["signed by another key", await sign(theirs, { alg: "ES256", kid })],
    ["foreign kid", await sign(theirs, { alg: "ES256", kid: "theirs" })],
    ["no kid", await sign(ours, { alg: "ES256" })],
    ["alg none", `${btoa('{"alg":"none"}').replaceAll("=", "")}.${claims}.`],
    [
      "HS256 with the public key",
      await sign(new TextEncoder().encode(JSON.stringify(publicKey)), { alg: "HS256", kid }),
    ],
    ["of an earlier version of the account", await sign(ours, { alg: "ES256", kid }, { ver: ver - 1 })],
    ["of a deleted account", await sign(ours, { alg: "ES256", kid }, { sub: uniqueEmail() })],
  ];
}
