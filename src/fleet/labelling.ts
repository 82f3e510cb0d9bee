import type { AgentStore } from "../accounts/agent-store.ts";
import { LABELLED_AGENTS } from "../accounts/audit-feed.ts";
import type { JobRechecks } from "../accounts/owned-jobs.ts";
import type { Actor } from "../auth/identity.ts";
import { authorize, authorizeAgent, authorizeFoundAgent, visibleAgents } from "../auth/permissions.ts";
import { Invalid, NotAllowed, NotFound } from "../lib/errors.ts";
import { type Labels, parseSelector, type SelectorTerms } from "../lib/selectors.ts";
import {
  type LabelChanges,
  type LabelledAgent,
  type LabelSummary,
  type LabelsChanged,
  type LabelsQuery,
  type LabelsRequest,
  MAX_LABEL_KEYS,
  MAX_LABELLED_AGENTS,
  MAX_LABELS,
} from "../schemas/labels.ts";
import { type CheckedAgent, createApplyLabels, type Problem } from "./label-changes.ts";
import { formatCsvRow } from "./label-csv.ts";
import { invalidLines, type LabelFile, readLabelFile } from "./label-file.ts";
import type { LabelStore } from "./label-store.ts";
import type { Selectors } from "./selectors.ts";

/** Reads and changes the labels of agents. Callers change only agents that their grants include before and after the change. */
export interface Labelling {
  /** Returns the labels of the agents that the caller sees, with the number of agents. */
  list(actor: Actor, query: LabelsQuery): Promise<LabelSummary[]>;
  read(actor: Actor, apId: string): Promise<LabelledAgent>;
  update(actor: Actor, apId: string, changes: LabelChanges): Promise<LabelledAgent>;
  /** Changes labels of all agents that a selector selects. Changes none if one of them must not change. */
  updateMany(actor: Actor, request: LabelsRequest): Promise<LabelsChanged>;
  /** Yields the labels that callers have set, as CSV. */
  exportCsv(actor: Actor, selector: SelectorTerms | undefined): AsyncGenerator<string>;
  /** Changes labels as a CSV file says. Throws `Invalid` with each line that cannot be applied, and then changes nothing. */
  importCsv(actor: Actor, text: string, isDryRun: boolean): Promise<LabelsChanged>;
}

export interface LabellingOptions {
  store: LabelStore;
  /** For changes of many agents, which may take several seconds. */
  bulkStore: LabelStore;
  agents: Pick<AgentStore, "find">;
  selectors: Selectors;
  rechecks: JobRechecks;
}

const REASONS: Record<Problem, string> = {
  outside: "Not enough permissions",
  moved: "Your grants do not include an agent with these labels",
  full: `an agent has at most ${MAX_LABELS} labels`,
};

export function createLabelling({ store, bulkStore, agents, selectors, rechecks }: LabellingOptions): Labelling {
  const apply = createApplyLabels(store, rechecks);
  const applyToMany = createApplyLabels(bulkStore, rechecks);

  return {
    async list(actor, { selector: terms, limit }) {
      authorize(actor, "labels.list");
      const filter = { scope: visibleAgents(actor), selector: await selectors.resolve(actor, terms) };
      const byKey = new Map<string, LabelSummary>();
      for (const { key, agentsOfKey, value, agents } of await store.counts(filter, limit)) {
        const summary = byKey.get(key) ?? { key, agents: agentsOfKey, values: [] };
        summary.values.push({ value, agents });
        byKey.set(key, summary);
      }
      return [...byKey.values()];
    },

    async read(actor, apId) {
      authorizeAgent(actor, "agents.read", apId);
      const agent = await agents.find(apId);
      authorizeFoundAgent(actor, "agents.read", agent);
      return { ap_id: apId, labels: agent.labels };
    },

    async update(actor, apId, changes) {
      authorizeAgent(actor, "labels.update", apId);
      await apply(actor, {
        action: "labels.update",
        filter: { apIds: [apId] },
        patches: { all: changes },
        check: rejectAgent,
        audit: () => ({ object: `agent:${apId}`, detail: { labels: changes } }),
      });
      const agent = await agents.find(apId);
      if (agent === undefined) throw new NotFound("Agent");
      return { ap_id: apId, labels: agent.labels };
    },

    async updateMany(actor, { selector: text, labels, dry_run: isDryRun }) {
      authorize(actor, "labels.update_many");
      const selector = await selectors.resolve(actor, parseSelector(text), { place: "body", loc: ["selector"] });
      const counts = await applyToMany(actor, {
        action: "labels.update_many",
        filter: { selector },
        patches: { all: labels },
        isDryRun,
        check: rejectSelection,
        audit: (changed) => ({ object: LABELLED_AGENTS, detail: { selector: text, labels, agents: changed } }),
      });
      return { status: "success", ...counts, dry_run: isDryRun };
    },

    async *exportCsv(actor, terms) {
      authorize(actor, "labels.export");
      const filter = { scope: visibleAgents(actor), selector: await selectors.resolve(actor, terms) };
      const keys = await store.keys(filter);
      if (keys.length > MAX_LABEL_KEYS) {
        const msg = `Value error, the agents have more than ${MAX_LABEL_KEYS} different labels; select fewer agents`;
        throw new Invalid([{ loc: ["selector"], msg, type: "value_error" }], "query");
      }
      yield formatCsvRow(["ap_id", ...keys]);
      const cellsOf = (labels: Labels) => keys.map((key) => (Object.hasOwn(labels, key) ? (labels[key] ?? "") : ""));
      for await (const page of store.pages(filter)) {
        yield page.map(({ apId, labels }) => formatCsvRow([apId, ...cellsOf(labels)])).join("");
      }
    },

    async importCsv(actor, text, isDryRun) {
      authorize(actor, "labels.import");
      const file = readLabelFile(text);
      const byName = new Map([...file.agents].map(([apId, { changes }]) => [apId, changes]));
      const counts = await applyToMany(actor, {
        action: "labels.import",
        filter: {},
        patches: { byName },
        isDryRun,
        check: (found) => rejectLines(file, found),
        audit: (changed) => ({ object: LABELLED_AGENTS, detail: { columns: file.keys, agents: changed } }),
      });
      return { status: "success", ...counts, dry_run: isDryRun };
    },
  };
}

function rejectAgent([agent]: readonly CheckedAgent[]): void {
  if (agent === undefined) throw new NotFound("Agent");
  if (agent.problem === "full") {
    throw new Invalid([{ loc: [], msg: `Value error, ${REASONS.full}`, type: "value_error" }]);
  }
  if (agent.problem !== undefined) throw new NotAllowed(REASONS[agent.problem]);
}

function rejectSelection(agents: readonly CheckedAgent[]): void {
  const reject = (field: string, msg: string) =>
    new Invalid([{ loc: [field], msg: `Value error, ${msg}`, type: "value_error" }]);
  if (agents.length > MAX_LABELLED_AGENTS) {
    const most = MAX_LABELLED_AGENTS.toLocaleString("en-US");
    throw reject(
      "selector",
      `the selector selects more than ${most} agents, which is the most that one request can change`,
    );
  }
  const count = (problem: Problem) => agents.filter((agent) => agent.problem === problem).length;
  const [outside, moved, full] = [count("outside"), count("moved"), count("full")];
  if (outside > 0) throw new NotAllowed(`${REASONS.outside} for ${outside} of the ${agents.length} selected agents`);
  if (moved > 0) throw new NotAllowed(REASONS.moved);
  if (full > 0) throw reject("labels", `${REASONS.full}, and ${full} of the selected agents would have more`);
}

/** Rejects the lines that are not valid, and those of agents that do not exist or must not change. */
function rejectLines({ agents, errors }: LabelFile, found: readonly CheckedAgent[]): void {
  const problems = new Map(found.map(({ apId, problem }) => [apId, problem]));
  const ofAgents = [...agents].flatMap(([apId, { line }]) => {
    if (!problems.has(apId)) return [{ line, reason: "Agent not found" }];
    const problem = problems.get(apId);
    return problem === undefined ? [] : [{ line, reason: REASONS[problem] }];
  });
  if (errors.length + ofAgents.length > 0) throw invalidLines([...errors, ...ofAgents]);
}
