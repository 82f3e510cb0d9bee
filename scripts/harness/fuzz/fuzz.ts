import { setTimeout as sleep } from "node:timers/promises";
import * as fc from "fast-check";
import type { OpenApiDocument } from "../../../src/http/docs/openapi.ts";
import { ApiClient } from "../client.ts";
import { type Case, casesOf } from "./cases.ts";
import { ApiDocument } from "./document.ts";
import { asCurl, exchange, isCutShort } from "./exchange.ts";
import { FuzzAccounts, type OtherTokens } from "./fuzz-accounts.ts";
import { Judge } from "./judge.ts";
import { compareTwins } from "./twin.ts";

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
  const { url, admin, seed, seconds, perSecond, maxRequests = Number.POSITIVE_INFINITY, tokens = {}, signal } = options;
  const client = new ApiClient(url);
  const document = new ApiDocument(await client.call<OpenApiDocument>("/openapi.json"));
  const judge = new Judge(document);
  const outcome: Outcome = { requests: 0, findings: [], statuses: new Map() };
  const similar = new Map<string, number>();
  const endMs = performance.now() + seconds * 1000;
  const isOver = (): boolean => {
    const isEnough = outcome.requests >= maxRequests || outcome.findings.length >= MAX_FINDINGS;
    return isEnough || performance.now() >= endMs || signal?.aborted === true;
  };

  const add = (finding: Finding, sort = finding.what): void => {
    const count = (similar.get(sort) ?? 0) + 1;
    similar.set(sort, count);
    if (count > MAX_SIMILAR) return;
    outcome.findings.push(finding);
    options.onFinding?.(finding);
  };

  const send = async ({ operation, caller, kind, sent }: Case, accounts: FuzzAccounts): Promise<void> => {
    outcome.requests++;
    const response = await exchange(url, sent, DEADLINE_MS).catch((error: Error) => error);
    const isFailed = response instanceof Error;
    const isExpected = isFailed && isCutShort(response, sent);
    const status = isExpected ? "cut short" : isFailed ? "none" : String(response.status);
    const counts = outcome.statuses.get(operation.id) ?? new Map<string, number>();
    outcome.statuses.set(operation.id, counts.set(status, (counts.get(status) ?? 0) + 1));
    if (isExpected) return;
    const report = (violation: string, text = ""): void => {
      const what = `${operation.id} (${kind}) ${violation}${text === "" ? "" : ` – ${text.slice(0, 300)}`}`;
      const curl = asCurl(url, sent, `fuzz-${seed}-${outcome.requests}`);
      add({ what, caller: caller.name, curl }, `${operation.id} ${violation}`);
    };
    if (isFailed) return report(`returned no response: ${response}`);
    if (response.status < 300 && sent.body !== undefined) accounts.record(sent.body, response.text);
    // 503 is allowed only while a component is unavailable.
    if (response.status === 503 && (await client.attempt("/readyz"))?.status !== 200) return;
    for (const violation of judge.verdict(caller, sent, response)) report(violation, response.text);
    const { twins } = caller;
    const told = twins && (await compareTwins(url, sent, response, twins, DEADLINE_MS).catch(String));
    if (told !== undefined) report(told, response.text);
  };

  /** Creates accounts, sends requests, checks the service and the canaries, and deletes the accounts. */
  const runRound = async (round: number, prefix: string): Promise<void> => {
    const accounts = new FuzzAccounts(client, await client.logIn(admin.username, admin.password), prefix);
    try {
      await accounts.createCanaries();
      const cases = casesOf(document, await accounts.createCallers(prefix, tokens), prefix);
      const startedMs = performance.now();
      let next = 0;
      const lanes = Array.from({ length: IN_FLIGHT }, async () => {
        while (next < REQUESTS_PER_ROUND && !isOver()) {
          const index = next++;
          await sleep(Math.max(0, startedMs + (index * 1000) / perSecond - performance.now()));
          const caseSeed = mixSeed(seed, round * REQUESTS_PER_ROUND + index);
          for (const one of fc.sample(cases, { numRuns: 1, seed: caseSeed })) await send(one, accounts);
        }
      });
      await Promise.all(lanes);
      for (const path of ["/healthz", "/readyz"])
        await client.call(path).catch((error) => add({ what: String(error) }));
      for (const what of await accounts.changes()) add({ what });
    } finally {
      await accounts.remove();
    }
  };

  // Differs between runs with the same seed.
  const prefix = `fuzz-${Date.now().toString(36)}`;
  for (let round = 1; !isOver(); round++) await runRound(round, `${prefix}-${round}`);
  return outcome;
}

/** Returns a seed for each case, so that neighbouring cases have nothing in common. */
function mixSeed(seed: number, index: number): number {
  const mix = Math.imul(seed ^ Math.imul(index, 0x9e3779b1), 0x85ebca6b);
  return Math.imul(mix ^ (mix >>> 15), 0xc2b2ae35) | 0;
}
