import { execFile } from "node:child_process";
import { print } from "./cli.ts";

/** Tells systemd, where it waits for that (`Type=notify`), that we are ready. Node cannot write to its socket; its own command can. */
export function notifyReady(): void {
  if (process.env.NOTIFY_SOCKET === undefined) return;
  execFile("systemd-notify", ["--ready"], (error) => {
    if (error !== null) print(`systemd could not be told that everything is ready: ${error.message}`);
  });
}
