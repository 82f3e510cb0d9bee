import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";
import { describe, expect, it } from "vitest";
import { createTokens } from "../../../src/auth/tokens.ts";
import { NotAuthenticated } from "../../../src/lib/errors.ts";

const START = new Date("2026-01-01T00:00:00Z");
const CLAIMS = { sub: "a@example.com", login_type: "user", roles: ["user"], scope: "agents:read", ver: 1 } as const;
const ISSUER = "controller";

async function newKey(kid: string): Promise<JWK & { kid: string }> {
  const { privateKey } = await generateKeyPair("ES256", { extractable: true });
  return { ...(await exportJWK(privateKey)), kid };
}

const later = (seconds: number) => new Date(START.getTime() + seconds * 1000);
const tokensWith = (keys: (JWK & { kid: string })[], now = START, issuer = ISSUER) =>
  createTokens({ keys, issuer, lifetimeSeconds: 3600, now: () => now });
const claimsOf = (claims: object) => ({ ...claims, roles: [...CLAIMS.roles] });

describe("tokens", () => {
  it("contain the claims that they were issued for", async () => {
    const tokens = tokensWith([await newKey("a")]);
    expect(await tokens.verify(await tokens.issue(claimsOf(CLAIMS) as never))).toEqual({
      ...CLAIMS,
      exp: START.getTime() / 1000 + 3600,
    });
  });

  it("expire, with a tolerance of one minute for clock differences", async () => {
    const key = await newKey("a");
    const token = await tokensWith([key]).issue(claimsOf(CLAIMS) as never);
    await expect(tokensWith([key], later(3600 + 59)).verify(token)).resolves.toMatchObject({ ver: 1 });
    await expect(tokensWith([key], later(3600 + 61)).verify(token)).rejects.toThrow(NotAuthenticated);
  });

  it("stay valid while their key is the previous one, and not after its removal", async () => {
    const [previous, current] = [await newKey("previous"), await newKey("current")];
    const token = await tokensWith([previous]).issue(claimsOf(CLAIMS) as never);
    await expect(tokensWith([current, previous]).verify(token)).resolves.toMatchObject({ ver: 1 });
    await expect(tokensWith([current]).verify(token)).rejects.toThrow(NotAuthenticated);
  });

  it("of another issuer are rejected, also with our key", async () => {
    const key = await newKey("a");
    const token = await tokensWith([key], START, "someone else").issue(claimsOf(CLAIMS) as never);
    await expect(tokensWith([key]).verify(token)).rejects.toThrow(NotAuthenticated);
  });

  it("signed with another key under the id of our key are rejected", async () => {
    const token = await tokensWith([await newKey("a")]).issue(claimsOf(CLAIMS) as never);
    await expect(tokensWith([await newKey("a")]).verify(token)).rejects.toThrow(NotAuthenticated);
  });

  it("signed with HS256 and our public key as the secret are rejected", async () => {
    const key = await newKey("a");
    const tokens = tokensWith([key]);
    const secret = new TextEncoder().encode(JSON.stringify(tokens.publicKeys().keys[0]));
    const forged = await new SignJWT({ ...CLAIMS, roles: ["admin"], jti: "x" })
      .setProtectedHeader({ alg: "HS256", kid: "a" })
      .setIssuer(ISSUER)
      .setAudience(ISSUER)
      .setIssuedAt(START)
      .setExpirationTime(later(60))
      .sign(secret);
    await expect(tokens.verify(forged)).rejects.toThrow(NotAuthenticated);
  });
});
