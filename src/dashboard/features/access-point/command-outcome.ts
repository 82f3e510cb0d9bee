import type { JobState } from "../../../schemas/job.ts";
import type { JobMessage } from "../../api/job-socket.ts";

/** What became of a command. */
export interface Outcome {
  state: JobState;
  text: string;
}

const MAX_TEXT = 500;
const UNDER_WAY: readonly JobState[] = ["queued", "running"];

/** What a message of its job says of it; nothing while the answer is still to come. */
export function outcomeOf(message: JobMessage): Outcome | undefined {
  switch (message.type) {
    case "command": {
      const [answer = {}] = message.data;
      return { state: answer.status === "failed" ? "failed" : "done", text: textOf(answer.data ?? answer) };
    }
    case "status": {
      const { state } = message.data;
      return UNDER_WAY.includes(state) ? undefined : { state, text: stateText(state) };
    }
    case "error":
      return { state: "failed", text: message.data.detail };
    default:
      return undefined;
  }
}

export const NO_ANSWER: Outcome = { state: "expired", text: "No answer came within a minute." };

const stateText = (state: JobState): string => (state === "expired" ? NO_ANSWER.text : "");

/** Agents answer as they like; most with a `detail`. */
function textOf(answer: unknown): string {
  const detail = typeof answer === "object" && answer !== null && "detail" in answer ? answer.detail : answer;
  const text = typeof detail === "string" ? detail : JSON.stringify(detail);
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
}
