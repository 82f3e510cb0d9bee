import type { InheritedSocket } from "./inherited-socket.ts";
import type { Component } from "./supervisor.ts";

export interface WorkerOptions {
  host: string;
  port: number;
  /** Listens there already, held by whoever started us. */
  socket: InheritedSocket | undefined;
  /** Where the Worker is reached from this machine. */
  url: string;
  /** Fires when the stack is told to stop. */
  signal: AbortSignal;
  dataDir: string;
  /** The Worker's settings and secrets. */
  env: Record<string, string>;
}

export interface StackForm {
  help: string;
  /** Settings of the Worker whose defaults differ in this form. */
  defaults?: Record<string, string>;
  /** The socket that it is started with, if it can serve one. */
  socket?(): InheritedSocket | undefined;
  /** Whether the Worker starts only when everything behind it is ready. */
  opensLast: boolean;
  workerComponent(options: WorkerOptions): Component | Promise<Component>;
}
