import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Component } from "../supervisor.ts";

export const mailFolder = (dataDir: string): string => join(dataDir, "mail");

export interface MailCatcherOptions {
  port: number;
  /** The mail catcher rejects requests without it. */
  token: string;
}

/** Returns the value for MAIL_URL. The token is in its path, as the key of a mail service is in its URL. */
export const mailUrl = ({ port, token }: MailCatcherOptions): string => `http://127.0.0.1:${port}/${token}`;

/** The mail service of the stack. It writes each message to a file. */
export function mailCatcherComponent({ dataDir, port, token }: MailCatcherOptions & { dataDir: string }): Component {
  mkdirSync(mailFolder(dataDir), { recursive: true, mode: 0o700 });
  return {
    name: "mail",
    command: process.execPath,
    args: [fileURLToPath(new URL("../../mail-catcher/server.ts", import.meta.url)), mailFolder(dataDir), String(port)],
    env: { MAIL_TOKEN: token },
    ready: async () => (await fetch(mailUrl({ port, token }))).status === 405,
  };
}
