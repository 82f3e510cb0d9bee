import { spawnSync } from "node:child_process";

/** Tells systemd, where it started us (`Type=notify`), that we are ready. Node has no datagrams over local sockets, so its own command does. */
export function notifyReady(): void {
  if (process.env.NOTIFY_SOCKET === undefined) return;
  spawnSync("systemd-notify", ["--ready", `--pid=${process.pid}`], { stdio: "inherit", timeout: 5_000 });
}
