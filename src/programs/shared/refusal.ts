import { BadConfiguration } from "../../env.ts";
import { describeError } from "../../lib/log.ts";
import { Refused } from "./cli.ts";

/** What a person is told of a failure: a sentence, and no stack. For commands that fail because of what they are told, or of a store. */
export function refusalOf(error: unknown): Refused {
  if (error instanceof Refused) return error;
  return new Refused(error instanceof BadConfiguration ? error.message : `It failed: ${describeError(error)}`);
}
