import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import type { Component } from "../supervisor.ts";

export interface PasswordHasherOptions {
  port: number;
  /** The hasher rejects requests without it. */
  token: string;
}

/** The password hasher. It has its own process, and hashes one password per core at a time. */
export function passwordHasherComponent({ port, token }: PasswordHasherOptions): Component {
  return {
    name: "passwords",
    command: process.execPath,
    args: [fileURLToPath(new URL("../../password-hasher/server.ts", import.meta.url)), String(port)],
    env: { PASSWORDS_TOKEN: token, UV_THREADPOOL_SIZE: String(availableParallelism()) },
    ready: async () => {
      const headers = { Authorization: `Bearer ${token}` };
      return (await fetch(`http://127.0.0.1:${port}/`, { headers })).ok;
    },
  };
}
