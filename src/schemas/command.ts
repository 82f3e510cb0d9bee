import * as z from "zod";

/** What goes to an agent in one line: no more than a line, and nothing that a terminal would obey. */
const Command = z
  .string()
  .min(1)
  .max(256)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is kept out.
  .regex(/^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$/u)
  .refine((command) => command.isWellFormed() && command.trim() === command, "must not begin or end with blanks");

export const CommandRequest = z.object({
  agent_id: z.string().describe("The agent's `ap_id`."),
  command: Command.describe("A name that the agent knows, and what belongs to it, separated by blanks."),
});
export type CommandRequest = z.output<typeof CommandRequest>;
