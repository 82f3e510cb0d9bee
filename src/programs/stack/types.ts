import type { InheritedSocket } from "./inherited-socket.ts";
import type { Component } from "./supervisor.ts";

export interface WorkerOptions {
  host: string;
  port: number;
  /** A listening socket that systemd passed to the stack. */
  socket: InheritedSocket | undefined;
  /** The URL of the Worker on this machine. */
  url: string;
  dataDir: string;
  /** The Worker's settings and secrets. */
  env: Record<string, string>;
}

/** How the stack runs: for development or for production. */
export interface StackMode {
  /** The npm command, for the help. */
  name: string;
  summary: string;
  /** Worker settings whose defaults differ in this mode. */
  defaults?: Record<string, string>;
  /** Returns the socket that systemd passed to the stack, if this mode can use one. */
  socket?(): InheritedSocket | undefined;
  /** Whether the Worker starts only after all other components are ready. */
  startsWorkerLast: boolean;
  workerComponent(options: WorkerOptions): Component | Promise<Component>;
}
