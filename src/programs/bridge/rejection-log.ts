import { print } from "../shared/cli.ts";

/** Prints a line for each rejected message, up to a number of them a minute: an agent must not fill the log. */
export interface RejectionLog {
  note(topic: string, reason: string): void;
  /** Prints how many had no line of their own. To be called once a minute. */
  flush(): void;
}

const MAX_LINES = 20;
/** A topic may have 65,535 bytes. */
const MAX_LENGTH = 200;

export function createRejectionLog(): RejectionLog {
  let count = 0;
  return {
    note(topic, reason) {
      if (++count > MAX_LINES) return;
      // As JSON: a client that chooses the topic must not write lines of its own.
      print(
        `message rejected ${JSON.stringify({ topic: topic.slice(0, MAX_LENGTH), reason: reason.slice(0, MAX_LENGTH) })}`,
      );
    },
    flush() {
      if (count > MAX_LINES) print(`${count - MAX_LINES} more messages rejected`);
      count = 0;
    },
  };
}
