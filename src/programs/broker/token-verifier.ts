import { createRemoteJWKSet, jwtVerify } from "jose";
import * as z from "zod";
import type { BrokerClient } from "../../broker/topics.ts";

export interface TokenVerifierOptions {
  /** URL of the controller's public keys. */
  jwksUrl: string;
  issuer: string;
}

export interface VerifiedToken {
  client: BrokerClient;
  /** The version of the account when the token was issued, or `NO_ACCOUNT`. */
  version: number;
  expiresMs: number;
}

/** The version in the controller's own tokens, which belong to no account. */
export const NO_ACCOUNT = 0;

const Claims = z.object({
  sub: z.string(),
  login_type: z.enum(["agent", "third_party_app"]),
  scope: z.string().refine((scope) => scope.split(" ").includes("broker:use")),
  exp: z.number(),
  ver: z.int(),
});

export type VerifyToken = (username: string, token: string) => Promise<VerifiedToken>;

/** Creates a function that verifies the token which a client sends as its password. It rejects a token of another user name. */
export function createTokenVerifier({ jwksUrl, issuer }: TokenVerifierOptions): VerifyToken {
  const keys = createRemoteJWKSet(new URL(jwksUrl));
  return async (username, token) => {
    const { payload } = await jwtVerify(token, keys, { algorithms: ["ES256"], issuer, audience: issuer });
    const { sub, login_type, exp, ver } = Claims.parse(payload);
    if (sub !== username) throw new Error("The token belongs to another user name");
    const kind = login_type === "agent" ? "agent" : "service";
    return { client: { kind, name: sub }, version: ver, expiresMs: exp * 1000 };
  };
}
