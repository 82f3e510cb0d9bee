import type { UserConsoleLog } from "vitest";
import type { Reporter } from "vitest/node";
import { SECRETS } from "./secret-mark.ts";

/** Fails the run if a log line of any test contains a secret. */
export default class SecretGuard implements Reporter {
  #lines = 0;
  readonly #leaks: string[] = [];

  onUserConsoleLog({ content, taskId }: UserConsoleLog): void {
    this.#lines += content.split("\n").length - 1;
    if (SECRETS.test(content)) this.#leaks.push(`${taskId}: ${content}`);
  }

  onTestRunEnd(): void {
    if (this.#leaks.length > 0) process.exitCode = 1;
    console.log(`${this.#lines} log lines read, ${this.#leaks.length} with a secret`);
    for (const leak of this.#leaks) console.log(leak);
  }
}
