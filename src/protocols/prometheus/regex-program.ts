import { type Node, RegexError } from "./regex-syntax.ts";

/** Compiles a parsed expression to a program whose instructions refer to each other by index. */

export type Instruction =
  | { kind: "char"; accepts: (char: string) => boolean; steps: number; next: number }
  | { kind: "assert"; holds: (before: string | undefined, after: string | undefined) => boolean; next: number }
  | { kind: "split"; to: number[] }
  | { kind: "match" };

/** Each character of a text may take a few times as many steps. */
const MAX_INSTRUCTIONS = 2_000;
/** A sequence has no instruction of its own, so repeated empty ones would take endless time below the other limit. */
const MAX_COMPILED_NODES = 5 * MAX_INSTRUCTIONS;

export function toProgram(root: Node): { instructions: Instruction[]; start: number } {
  const instructions: Instruction[] = [];
  const emit = (instruction: Instruction): number => {
    if (instructions.length >= MAX_INSTRUCTIONS) throw new RegexError("is too complex");
    return instructions.push(instruction) - 1;
  };
  /** All empty options lead to the same instruction. */
  const emitSplit = (to: readonly number[]): number => emit({ kind: "split", to: [...new Set(to)] });
  let compiledNodes = 0;

  /** Compiles a node. Returns the index of its first instruction; its last one leads to `next`. */
  const compile = (node: Node, next: number): number => {
    if (++compiledNodes > MAX_COMPILED_NODES) throw new RegexError("is too complex");
    switch (node.kind) {
      case "char":
        return emit({ kind: "char", accepts: node.accepts, steps: node.steps, next });
      case "assert":
        return emit({ kind: "assert", holds: node.holds, next });
      case "sequence":
        return node.nodes.reduceRight((after, part) => compile(part, after), next);
      case "choice":
        return emitSplit(node.nodes.map((part) => compile(part, next)));
      case "repeat":
        return compileRepeat(node, next);
    }
  };

  const compileRepeat = ({ node, min, max }: Node & { kind: "repeat" }, next: number): number => {
    let start = next;
    if (max === Number.POSITIVE_INFINITY) {
      const to: number[] = [];
      start = emit({ kind: "split", to });
      to.push(compile(node, start), next);
    } else {
      for (let i = min; i < max; i++) start = emitSplit([compile(node, start), next]);
    }
    for (let i = 0; i < min; i++) start = compile(node, start);
    return start;
  };

  const start = compile(root, emit({ kind: "match" }));
  return { instructions, start };
}
