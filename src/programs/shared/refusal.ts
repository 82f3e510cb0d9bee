import { BadConfiguration } from "../../env.ts";
import { describeError } from "../../lib/log.ts";
import { UserError } from "./cli.ts";

/** What a person is told of a failure: a sentence, and no stack. For commands that fail because of what they are told, or of a store. */
export function refusalOf(error: unknown): UserError {
  if (error instanceof UserError) return error;
  return new UserError(error instanceof BadConfiguration ? error.message : `It failed: ${describeError(error)}`);
}
