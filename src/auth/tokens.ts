import { errors, importJWK, type JWK, type JWTPayload, jwtVerify, SignJWT } from "jose";
import * as z from "zod";
import type { WebCryptoKey } from "../lib/encoding.ts";
import { NotAuthenticated } from "../lib/errors.ts";

const ALGORITHM = "ES256";
const CLOCK_SKEW_SECONDS = 60;

export const LoginType = z.enum(["user", "agent", "third_party_app"]);
export type LoginType = z.output<typeof LoginType>;

const Claims = z.object({
  sub: z.string(),
  login_type: LoginType,
  roles: z.array(z.string()),
  scope: z.string(),
  ver: z.int(),
});
export type Claims = z.output<typeof Claims>;

const VerifiedClaims = Claims.extend({ exp: z.number() });
export type VerifiedClaims = z.output<typeof VerifiedClaims>;

export interface Tokens {
  readonly lifetimeSeconds: number;
  issue(claims: Claims): Promise<string>;
  /** Returns the claims of a token that this service issued. Throws `NotAuthenticated` if it did not, or if the token has expired. */
  verify(token: string): Promise<VerifiedClaims>;
  publicKeys(): { keys: JWK[] };
}

export interface TokenOptions {
  /** Private ES256 keys. The first signs, all verify: tokens of the previous key stay valid after a rotation. */
  keys: (JWK & { kid: string })[];
  issuer: string;
  lifetimeSeconds: number;
  now?: () => Date;
}

export function createTokens({ keys, issuer, lifetimeSeconds, now = () => new Date() }: TokenOptions): Tokens {
  const audience = issuer;
  const publicJwks = new Map(
    keys.map(({ kid, kty, crv, x, y }) => [kid, { kid, kty, crv, x, y, alg: ALGORITHM, use: "sig" } as JWK]),
  );
  // Caches the keys, not promises of them: a promise belongs to the request that created it and may never settle after that request ends.
  const imported = new Map<string, WebCryptoKey | Uint8Array>();
  const importOnce = async (id: string, jwk: JWK): Promise<WebCryptoKey | Uint8Array> => {
    const key = imported.get(id) ?? (await importJWK(jwk, ALGORITHM));
    imported.set(id, key);
    return key;
  };

  return {
    lifetimeSeconds,

    async issue(claims) {
      const [signer] = keys;
      if (signer === undefined) throw new Error("No signing key");
      const issuedAt = Math.floor(now().getTime() / 1000);
      const { sub, ...rest } = claims;
      return await new SignJWT(rest satisfies JWTPayload)
        .setProtectedHeader({ alg: ALGORITHM, kid: signer.kid, typ: "JWT" })
        .setSubject(sub)
        .setIssuer(issuer)
        .setAudience(audience)
        .setIssuedAt(issuedAt)
        .setExpirationTime(issuedAt + lifetimeSeconds)
        .setJti(crypto.randomUUID())
        .sign(await importOnce(`private:${signer.kid}`, signer));
    },

    async verify(token) {
      try {
        const { payload } = await jwtVerify(
          token,
          async ({ kid }) => {
            const jwk = kid === undefined ? undefined : publicJwks.get(kid);
            if (jwk === undefined) throw new errors.JWKSNoMatchingKey();
            return await importOnce(`public:${kid}`, jwk);
          },
          {
            algorithms: [ALGORITHM],
            issuer,
            audience,
            clockTolerance: CLOCK_SKEW_SECONDS,
            currentDate: now(),
            requiredClaims: ["exp", "iat", "jti"],
          },
        );
        return VerifiedClaims.parse(payload);
      } catch (error) {
        if (!(error instanceof errors.JOSEError || error instanceof z.ZodError)) throw error;
        throw new NotAuthenticated("Could not validate credentials");
      }
    },

    publicKeys: () => ({ keys: [...publicJwks.values()] }),
  };
}
