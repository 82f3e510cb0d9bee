import { createRemoteJWKSet, jwtVerify } from "jose";
import * as z from "zod";
import { clientKind } from "../../broker/client-kind.ts";
import type { BrokerClient } from "../../broker/topics.ts";

export interface TokenVerifierOptions {
  /** URL of the controller's public keys. */
  jwksUrl: string;
  issuer: string;
}

export interface VerifiedToken {
  client: BrokerClient;
  /** The kind of account that the token belongs to. */
  account: "agent" | "app" | "user";
  /** The version of the account when the token was issued, or `NO_ACCOUNT`. */
  version: number;
  expiresMs: number;
}

const Claims = z.object({
  sub: z.string(),
  login_type: z.enum(["agent", "third_party_app", "user"]),
  scope: z.string().transform((scope) => scope.split(" ")),
  exp: z.number(),
  ver: z.int(),
});

export type VerifyToken = (username: string, token: string) => Promise<VerifiedToken>;

/** Creates a function that verifies the token which a client sends as its password. It rejects a token of another user name. */
export function createTokenVerifier({ jwksUrl, issuer }: TokenVerifierOptions): VerifyToken {
  const keys = createRemoteJWKSet(new URL(jwksUrl));
  return async (username, token) => {
    const { payload } = await jwtVerify(token, keys, { algorithms: ["ES256"], issuer, audience: issuer });
    const { sub, login_type, scope, exp, ver } = Claims.parse(payload);
    if (sub !== username) throw new Error("The token belongs to another user name");
    const kind = clientKind(login_type, scope, ver);
    if (kind === undefined) throw new Error("The token has no scope for the broker");
    const account = login_type === "third_party_app" ? "app" : login_type;
    return { client: { kind, name: sub }, account, version: ver, expiresMs: exp * 1000 };
  };
}
