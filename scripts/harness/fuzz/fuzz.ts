import { setTimeout as sleep } from "node:timers/promises";
import * as fc from "fast-check";
import type { OpenApiDocument } from "../../../src/http/docs/openapi.ts";
import { Api } from "../api.ts";
import { makeCallers, type OtherTokens } from "./callers.ts";
import { Canaries } from "./canaries.ts";
import { type Case, casesOf } from "./cases.ts";
import { asCurl } from "./curl.ts";
import { ApiDocument } from "./document.ts";
import { type Answer, exchange, isCutShort } from "./exchange.ts";
import { Accounts } from "./fuzz-accounts.ts";
import { Judge } from "./judge.ts";

/** Asks for everything that the document has, rightly and wrongly, as everybody, and judges every answer. */

export interface FuzzOptions {
  url: string;
  admin: { username: string; password: string };
  seed: number;
  seconds: number;
  perSecond: number;
  /** Ends the run earlier, once so many requests were made. */
  maxRequests?: number;
  tokens?: OtherTokens;
  signal?: AbortSignal;
  /** Called for each new finding. */
  onFinding?: (finding: Finding) => void;
}

export interface Finding {
  /** What happened, and to which operation. */
  what: string;
  /** Who called. */
  caller: string;
  curl: string;
}

export interface Outcome {
  requests: number;
  findings: Finding[];
  /** By operation: how often each status came. */
  statuses: Map<string, Map<string, number>>;
}

const IN_FLIGHT = 6;
/** After so many, accounts are made anew: theirs may be gone by then, and tokens end. */
const REQUESTS_PER_ROUND = 400;
/** Nothing that the service does takes as long as this. */
const DEADLINE_MS = 30_000;
/** Of each sort of finding, the first few tell the story. */
const MAX_ALIKE = 2;
const MAX_FINDINGS = 100;

export async function fuzz(options: FuzzOptions): Promise<Outcome> {
  const run = await FuzzRun.begin(options);
  const endMs = performance.now() + options.seconds * 1000;
  while (performance.now() < endMs && !run.isOver) await run.round(endMs);
  return run.outcome;
}

class FuzzRun {
  readonly outcome: Outcome = { requests: 0, findings: [], statuses: new Map() };
  readonly #options: FuzzOptions;
  readonly #api: Api;
  readonly #document: ApiDocument;
  readonly #judge: Judge;
  /** Told apart from those of another run with the same seed. */
  readonly #prefix = `fuzz-${Date.now().toString(36)}`;
  readonly #alike = new Map<string, number>();
  #rounds = 0;

  private constructor(options: FuzzOptions, document: ApiDocument) {
    this.#options = options;
    this.#api = new Api(options.url);
    this.#document = document;
    this.#judge = new Judge(document);
  }

  static async begin(options: FuzzOptions): Promise<FuzzRun> {
    const document = await new Api(options.url).call<OpenApiDocument>("GET", "/openapi.json");
    return new FuzzRun(options, new ApiDocument(document));
  }

  get isOver(): boolean {
    const { signal, maxRequests = Number.POSITIVE_INFINITY } = this.#options;
    const { requests, findings } = this.outcome;
    return signal?.aborted === true || requests >= maxRequests || findings.length >= MAX_FINDINGS;
  }

  /** With accounts of its own, which are gone afterwards. */
  async round(endMs: number): Promise<void> {
    const { admin, tokens = {}, seed, perSecond } = this.#options;
    const prefix = `${this.#prefix}-${++this.#rounds}`;
    const adminToken = await this.#api.logIn(admin.username, admin.password);
    const accounts = new Accounts(this.#api, adminToken);
    try {
      const canaries = await Canaries.make(this.#api, accounts, `${prefix}-canary`);
      const callers = await makeCallers({
        api: this.#api,
        accounts,
        adminToken,
        prefix,
        canaries: canaries.names,
        tokens,
      });
      const cases = casesOf(this.#document, callers, prefix);
      const startedMs = performance.now();
      let next = 0;
      const turns = Array.from({ length: IN_FLIGHT }, async () => {
        while (next < REQUESTS_PER_ROUND && performance.now() < endMs && !this.isOver) {
          const index = next++;
          await sleep(Math.max(0, startedMs + (index * 1000) / perSecond - performance.now()));
          const [one] = fc.sample(cases, { numRuns: 1, seed: mixed(seed, this.#rounds * REQUESTS_PER_ROUND + index) });
          if (one !== undefined) await this.#try(one, accounts);
        }
      });
      await Promise.all(turns);
      await this.#lookAfter(canaries);
    } finally {
      await accounts.removeAll();
    }
  }

  async #try(one: Case, accounts: Accounts): Promise<void> {
    const { operation, caller, sent } = one;
    this.outcome.requests++;
    let answer: Answer;
    try {
      answer = await exchange(this.#options.url, sent, DEADLINE_MS);
    } catch (error) {
      if (isCutShort(error, sent)) return this.#count(operation.id, "cut short");
      this.#count(operation.id, "none");
      this.#find(one, `gets no answer: ${error instanceof Error ? `${error.name} ${error.message}` : error}`);
      return;
    }
    this.#count(operation.id, String(answer.status));
    if (answer.status < 300 && sent.body !== undefined) accounts.note(sent.body, answer.text);
    // Only where a part is really away.
    if (answer.status === 503 && !(await this.#isReady())) return;
    for (const fault of this.#judge.verdict(caller, sent, answer)) this.#find(one, fault, answer.text);
  }

  #count(operation: string, status: string): void {
    const counts = this.outcome.statuses.get(operation) ?? new Map<string, number>();
    counts.set(status, (counts.get(status) ?? 0) + 1);
    this.outcome.statuses.set(operation, counts);
  }

  #find({ operation, caller, kind, sent }: Case, fault: string, text = ""): void {
    const told = text === "" ? "" : ` – ${text.slice(0, 300)}`;
    const what = `${operation.id} (${kind}) ${fault}${told}`;
    const name = `fuzz-${this.#options.seed}-${this.outcome.requests}`;
    this.#note(`${operation.id} ${fault}`, { what, caller: caller.name, curl: asCurl(this.#options.url, sent, name) });
  }

  #note(sort: string, finding: Finding): void {
    const alike = (this.#alike.get(sort) ?? 0) + 1;
    this.#alike.set(sort, alike);
    if (alike > MAX_ALIKE) return;
    this.outcome.findings.push(finding);
    this.#options.onFinding?.(finding);
  }

  async #isReady(): Promise<boolean> {
    return await this.#api.call("GET", "/readyz").then(
      () => true,
      () => false,
    );
  }

  /** Whether the service lives, and what was there before is as it was. */
  async #lookAfter(canaries: Canaries): Promise<void> {
    for (const path of ["/healthz", "/readyz"]) {
      const alive = await this.#api.call("GET", path).then(() => undefined, String);
      if (alive !== undefined) this.#note(path, { what: alive, caller: "nobody", curl: "" });
    }
    for (const what of await canaries.changes()) this.#note(what, { what, caller: "", curl: "" });
  }
}

/** A seed for each case: neighbours should have nothing in common. */
function mixed(seed: number, index: number): number {
  const mix = Math.imul(seed ^ Math.imul(index, 0x9e3779b1), 0x85ebca6b);
  return Math.imul(mix ^ (mix >>> 15), 0xc2b2ae35) | 0;
}
