import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Part } from "./supervisor.ts";

export const mailFolder = (dataDir: string): string => join(dataDir, "mail");

/** The mail service of the local stack: each message becomes a file. */
export function mailPart(dataDir: string, port: number): Part {
  mkdirSync(mailFolder(dataDir), { recursive: true, mode: 0o700 });
  return {
    name: "mail",
    command: process.execPath,
    args: [fileURLToPath(new URL("mail-server.ts", import.meta.url)), mailFolder(dataDir), String(port)],
    ready: async () => (await fetch(`http://127.0.0.1:${port}/`)).status === 405,
  };
}
