import { once } from "node:events";
import { print } from "../../../src/programs/shared/cli.ts";
import { makeUser } from "../accounts.ts";
import { acknowledge, callbackPath, closeSockets, openSocket, seqOf, streamPath } from "../job-socket.ts";
import { until } from "../product.ts";
import { Quantiles } from "../stats.ts";
import { residentMib } from "../usage.ts";
import type { BenchContext } from "./context.ts";

/** A socket that never reads: the others of its job notice nothing, and it is closed at its bound. */

const OTHERS = 3;
const MESSAGE_BYTES = 64 * 1024;
const BOUND_BYTES = 16 * 1024 * 1024;
const TO_THE_BOUND = BOUND_BYTES / MESSAGE_BYTES;
/** Once more as many as lead to the bound: the others go on after it. */
const MESSAGES = 2 * TO_THE_BOUND;
const CLOSED_SLOW = 1013;

export async function benchStalled({ product, report }: BenchContext): Promise<void> {
  const { token } = await makeUser(product.dataDir, "bench-stalled@example.com");
  const withoutIt = await postTo(OTHERS);
  const before = residentMib(product.pidOf("worker"));
  print("The same with one more socket, which never reads.");
  const withIt = await postTo(OTHERS, true);
  const after = residentMib(product.pidOf("worker"));

  for (const [what, { tookMs }] of [
    ["without it", withoutIt],
    ["with it", withIt],
  ] as const) {
    report.add({
      what: `callback of ${MESSAGE_BYTES / 1024} KiB to the sockets that read, ${what}`,
      value: tookMs.at(0.5),
      unit: "ms (p50)",
      ratio: { of: "without it", value: tookMs.at(0.5) / withoutIt.tookMs.at(0.5) },
      details: { "p99 ms": tookMs.at(0.99), "longest ms": tookMs.at(1), messages: tookMs.count },
    });
  }
  report.add({
    what: "memory of workerd when the one that does not read was closed",
    value: after,
    unit: "MiB",
    details: { before },
  });
  report.require({
    what: "the others got every message",
    isKept: withIt.tookMs.count === OTHERS * MESSAGES && withIt.refused === 0,
    details: { messages: withIt.tookMs.count, of: OTHERS * MESSAGES, refused: withIt.refused },
  });
  report.require({
    what: `the one that did not read was closed with ${CLOSED_SLOW} at ${BOUND_BYTES / 1024 / 1024} MiB`,
    isKept: withIt.closedWith === CLOSED_SLOW && withIt.stalledRead === TO_THE_BOUND - 1,
    details: { "closed with": withIt.closedWith ?? "nothing", "messages that it found": withIt.stalledRead },
  });

  async function postTo(readers: number, hasStalled = false) {
    const { url } = product;
    const jobNumber = crypto.randomUUID();
    const tookMs = new Quantiles();
    const outcome = { tookMs, refused: 0, closedWith: undefined as number | undefined, stalledRead: 0 };
    const open = (onText: Parameters<typeof openSocket>[0]["onText"]) =>
      openSocket({ url, path: streamPath(jobNumber), token, ...(onText && { onText }) });
    const sockets = await Promise.all(
      Array.from({ length: readers }, () =>
        open((text, socket) => {
          tookMs.add(performance.now() - Number(/"sent_ms":([\d.]+)/.exec(text)?.[1]));
          acknowledge(socket, seqOf(text));
        }),
      ),
    );
    const stalled = hasStalled ? await open(() => outcome.stalledRead++) : undefined;
    stalled?.pause();
    const filler = "x".repeat(MESSAGE_BYTES);
    for (let i = 0; i < MESSAGES; i++) {
      const response = await fetch(`${url}${callbackPath(jobNumber)}`, {
        method: "POST",
        headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
        body: `[{"sent_ms":${performance.now()},"filler":"${filler}"}]`,
      });
      await response.arrayBuffer();
      if (response.status !== 200) outcome.refused++;
    }
    await until(() => tookMs.count >= readers * MESSAGES).catch(() => {});
    if (stalled !== undefined) {
      // Now it reads what was on its way to it, and the Close at the end.
      const ended = once(stalled, "close", { signal: AbortSignal.timeout(60_000) });
      stalled.resume();
      const [code] = (await ended.catch(() => [undefined])) as [number | undefined];
      outcome.closedWith = code;
    }
    closeSockets(sockets);
    return outcome;
  }
}
