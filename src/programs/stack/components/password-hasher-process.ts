import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import type { Component } from "../supervisor.ts";

export interface PasswordHasherOptions {
  port: number;
  /** Whoever shows it may have passwords hashed and checked. */
  token: string;
}

/** Hashes passwords, in a process of its own: as many at a time as there are cores. */
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
