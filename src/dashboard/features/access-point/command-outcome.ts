import type { JobState } from "../../../schemas/job.ts";
import type { JobMessage } from "../../api/job-socket.ts";

/** The state of a command, with a text for people. */
export interface Outcome {
  state: JobState;
  text: string;
}

const MAX_TEXT = 500;
const NOT_FINISHED: readonly JobState[] = ["queued", "running"];

/** Returns the outcome that a message of the command's job reports, or undefined if the command has not finished. */
export function outcomeOf(message: JobMessage): Outcome | undefined {
  switch (message.type) {
    case "command": {
      const [result = {}] = message.data;
      return { state: result.status === "failed" ? "failed" : "done", text: textOf(result.data ?? result) };
    }
    case "status": {
      const { state } = message.data;
      return NOT_FINISHED.includes(state) ? undefined : { state, text: stateText(state) };
    }
    case "error":
      return { state: "failed", text: message.data.detail };
    default:
      return undefined;
  }
}

export const NO_RESULT: Outcome = { state: "expired", text: "The access point did not respond within a minute." };

const stateText = (state: JobState): string => (state === "expired" ? NO_RESULT.text : "");

/** Returns the `detail` of a result, or all of it as JSON: access points choose the format of their results. */
function textOf(result: unknown): string {
  const detail = typeof result === "object" && result !== null && "detail" in result ? result.detail : result;
  const text = typeof detail === "string" ? detail : JSON.stringify(detail);
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
}
