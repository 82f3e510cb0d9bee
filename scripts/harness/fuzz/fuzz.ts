import { setTimeout as sleep } from "node:timers/promises";
import * as fc from "fast-check";
import type { OpenApiDocument } from "../../../src/http/docs/openapi.ts";
import { ApiClient } from "../client.ts";
import { type Case, casesOf } from "./cases.ts";
import { ApiDocument } from "./document.ts";
import { asCurl, exchange, isCutShort } from "./exchange.ts";
import { FuzzAccounts, type OtherTokens } from "./fuzz-accounts.ts";
import { Judge } from "./judge.ts";

/** Sends valid and invalid requests for every operation of the document, as every kind of caller, and judges the responses. */

export interface FuzzOptions {
  url: string;
  admin: { username: string; password: string };
  seed: number;
  seconds: number;
  perSecond: number;
  /** Ends the run earlier, after so many requests. */
  maxRequests?: number;
  tokens?: OtherTokens;
  signal?: AbortSignal;
  /** Called for each new finding. */
  onFinding?: (finding: Finding) => void;
}

export interface Finding {
  /** The operation and its violation. */
  what: string;
  caller?: string;
  curl?: string;
}

export interface Outcome {
  requests: number;
  findings: Finding[];
  /** How often each status occurred, by operation. */
  statuses: Map<string, Map<string, number>>;
}

const IN_FLIGHT = 6;
/** Each round creates new accounts, since requests may have deleted them and tokens expire. */
const REQUESTS_PER_ROUND = 400;
/** Longer than any operation takes. */
const DEADLINE_MS = 30_000;
/** Similar findings beyond these are dropped. */
const MAX_SIMILAR = 2;
const MAX_FINDINGS = 100;

export async function fuzz(options: FuzzOptions): Promise<Outcome> {
  const document = await new ApiClient(options.url).call<OpenApiDocument>("/openapi.json");
  const run = new FuzzRun(options, new ApiDocument(document));
  while (!run.isOver) await run.round();
  return run.outcome;
}

class FuzzRun {
  readonly outcome: Outcome = { requests: 0, findings: [], statuses: new Map() };
  readonly #options: FuzzOptions;
  readonly #client: ApiClient;
  readonly #document: ApiDocument;
  readonly #judge: Judge;
  readonly #endMs: number;
  /** Differs between runs with the same seed. */
  readonly #prefix = `fuzz-${Date.now().toString(36)}`;
  readonly #similar = new Map<string, number>();
  #rounds = 0;

  constructor(options: FuzzOptions, document: ApiDocument) {
    this.#options = options;
    this.#client = new ApiClient(options.url);
    this.#document = document;
    this.#judge = new Judge(document);
    this.#endMs = performance.now() + options.seconds * 1000;
  }

  get isOver(): boolean {
    const { signal, maxRequests = Number.POSITIVE_INFINITY } = this.#options;
    const { requests, findings } = this.outcome;
    const isEnough = requests >= maxRequests || findings.length >= MAX_FINDINGS;
    return isEnough || performance.now() >= this.#endMs || signal?.aborted === true;
  }

  /** Creates accounts, sends requests, checks the canaries, and deletes the accounts. */
  async round(): Promise<void> {
    const { admin, tokens = {}, seed, perSecond } = this.#options;
    const prefix = `${this.#prefix}-${++this.#rounds}`;
    const adminToken = await this.#client.logIn(admin.username, admin.password);
    const accounts = new FuzzAccounts(this.#client, adminToken, prefix);
    try {
      await accounts.createCanaries();
      const cases = casesOf(this.#document, await accounts.createCallers(prefix, tokens), prefix);
      const startedMs = performance.now();
      let next = 0;
      const lanes = Array.from({ length: IN_FLIGHT }, async () => {
        while (next < REQUESTS_PER_ROUND && !this.isOver) {
          const index = next++;
          await sleep(Math.max(0, startedMs + (index * 1000) / perSecond - performance.now()));
          const caseSeed = mixSeed(seed, this.#rounds * REQUESTS_PER_ROUND + index);
          for (const one of fc.sample(cases, { numRuns: 1, seed: caseSeed })) await this.#try(one, accounts);
        }
      });
      await Promise.all(lanes);
      for (const path of ["/healthz", "/readyz"]) await this.#client.call(path).catch((error) => this.#add(`${error}`));
      for (const change of await accounts.changes()) this.#add(change);
    } finally {
      await accounts.remove();
    }
  }

  async #try(one: Case, accounts: FuzzAccounts): Promise<void> {
    const { operation, caller, sent } = one;
    this.outcome.requests++;
    const response = await exchange(this.#options.url, sent, DEADLINE_MS).catch((error: Error) => error);
    if (response instanceof Error) {
      const isExpected = isCutShort(response, sent);
      this.#count(operation.id, isExpected ? "cut short" : "none");
      if (!isExpected) this.#addCase(one, `returned no response: ${response}`);
      return;
    }
    this.#count(operation.id, String(response.status));
    if (response.status < 300 && sent.body !== undefined) accounts.record(sent.body, response.text);
    // 503 is allowed only while a component is unavailable.
    if (response.status === 503 && (await this.#client.attempt("/readyz"))?.status !== 200) return;
    for (const violation of this.#judge.verdict(caller, sent, response)) this.#addCase(one, violation, response.text);
  }

  #count(operation: string, status: string): void {
    const counts = this.outcome.statuses.get(operation) ?? new Map<string, number>();
    counts.set(status, (counts.get(status) ?? 0) + 1);
    this.outcome.statuses.set(operation, counts);
  }

  #addCase({ operation, caller, kind, sent }: Case, violation: string, text = ""): void {
    const what = `${operation.id} (${kind}) ${violation}${text === "" ? "" : ` – ${text.slice(0, 300)}`}`;
    const curl = asCurl(this.#options.url, sent, `fuzz-${this.#options.seed}-${this.outcome.requests}`);
    this.#add(what, `${operation.id} ${violation}`, { caller: caller.name, curl });
  }

  #add(what: string, sort = what, request: Omit<Finding, "what"> = {}): void {
    const similar = (this.#similar.get(sort) ?? 0) + 1;
    this.#similar.set(sort, similar);
    if (similar > MAX_SIMILAR) return;
    const finding = { what, ...request };
    this.outcome.findings.push(finding);
    this.#options.onFinding?.(finding);
  }
}

/** Returns a seed for each case, so that neighbouring cases have nothing in common. */
function mixSeed(seed: number, index: number): number {
  const mix = Math.imul(seed ^ Math.imul(index, 0x9e3779b1), 0x85ebca6b);
  return Math.imul(mix ^ (mix >>> 15), 0xc2b2ae35) | 0;
}
