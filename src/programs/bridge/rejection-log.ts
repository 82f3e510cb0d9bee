import { print } from "../shared/cli.ts";

/** Prints a line for each rejected message, up to a limit per minute, so that an agent cannot fill the log. */
export interface RejectionLog {
  add(topic: string, reason: string): void;
  /** Prints how many rejections exceeded the limit, and resets the count. The caller calls this once a minute. */
  flush(): void;
}

const MAX_LINES_PER_MINUTE = 20;
/** A topic may be up to 65,535 bytes long. */
const MAX_LENGTH = 200;

export function createRejectionLog(): RejectionLog {
  let count = 0;
  return {
    add(topic, reason) {
      if (++count > MAX_LINES_PER_MINUTE) return;
      // As JSON, because the client chooses the topic and must not forge log lines.
      const shown = { topic: topic.slice(0, MAX_LENGTH), reason: reason.slice(0, MAX_LENGTH) };
      print(`message rejected ${JSON.stringify(shown)}`);
    },
    flush() {
      if (count > MAX_LINES_PER_MINUTE) print(`${count - MAX_LINES_PER_MINUTE} more messages rejected`);
      count = 0;
    },
  };
}
