import { type Instruction, toProgram } from "./regex-program.ts";
import { literalsOf, parseRegex, RegexError } from "./regex-syntax.ts";

/**
 * Matches the regular expressions of PromQL. They are those of RE2, which needs time in proportion to the text. JavaScript's own may take
 * exponential time, and their author is a caller, so this is an automaton with a limit on its steps.
 */

/** Grafana lists all chosen values of a variable. */
const MAX_LITERALS_LENGTH = 65_536;
const MAX_LENGTH = 1_000;

/** Steps that all expressions of one request may take together. */
export interface StepBudget {
  left: number;
}

export const newStepBudget = (): StepBudget => ({ left: 50_000_000 });

export interface CompiledRegex {
  /** Returns whether the whole text matches. Throws `RegexError` if the budget is exhausted. */
  matches(text: string): boolean;
  /** All texts that match, if the expression is a list of texts. */
  literals: readonly string[] | undefined;
}

/** Compiles an expression that must match whole texts. Throws `RegexError`. */
export function compileRegex(pattern: string, budget: StepBudget): CompiledRegex {
  if (pattern.length > MAX_LITERALS_LENGTH) throw new RegexError("is too long");
  const { root, buildSteps } = parseRegex(pattern);
  const literals = literalsOf(root);
  if (literals !== undefined) {
    const texts = new Set(literals);
    return { matches: (text) => texts.has(text), literals };
  }
  if (pattern.length > MAX_LENGTH) throw new RegexError(`has more than ${MAX_LENGTH} characters`);
  spend(budget, buildSteps);
  const { instructions, start } = toProgram(root);
  const run = new Run(instructions, start, budget);
  const results = new Map<string, boolean>();
  return {
    literals: undefined,
    matches: (text) => {
      const known = results.get(text);
      if (known !== undefined) return known;
      const result = run.matches(text);
      results.set(text, result);
      return result;
    },
  };
}

function spend(budget: StepBudget, steps: number): void {
  budget.left -= steps;
  if (budget.left < 0) throw new RegexError("takes too many steps");
}

/** Follows all paths through a program at the same time. */
class Run {
  readonly #instructions: readonly Instruction[];
  readonly #start: number;
  readonly #budget: StepBudget;
  /** The round in which an instruction was last reached. */
  readonly #reached: Float64Array;
  #round = 0;

  constructor(instructions: readonly Instruction[], start: number, budget: StepBudget) {
    this.#instructions = instructions;
    this.#start = start;
    this.#budget = budget;
    this.#reached = new Float64Array(instructions.length);
  }

  matches(text: string): boolean {
    const chars = Array.from(text);
    let current = this.#follow([this.#start], undefined, chars[0]);
    for (const [i, char] of chars.entries()) {
      const next: number[] = [];
      for (const at of current) {
        const instruction = this.#instructions[at];
        if (instruction?.kind === "char" && instruction.accepts(char)) next.push(instruction.next);
      }
      if (next.length === 0) return false;
      current = this.#follow(next, char, chars[i + 1]);
    }
    return current.some((at) => this.#instructions[at]?.kind === "match");
  }

  /** Returns the instructions that are reached without reading a character. */
  #follow(from: readonly number[], before: string | undefined, after: string | undefined): number[] {
    this.#round++;
    const found: number[] = [];
    const open = [...from];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      const instruction = this.#instructions[at];
      // A path that ends here because it meets another takes time too.
      spend(this.#budget, instruction?.kind === "char" ? instruction.steps : 1);
      if (this.#reached[at] === this.#round) continue;
      this.#reached[at] = this.#round;
      if (instruction?.kind === "split") open.push(...instruction.to);
      else if (instruction?.kind === "assert") {
        if (instruction.holds(before, after)) open.push(instruction.next);
      } else found.push(at);
    }
    return found;
  }
}
