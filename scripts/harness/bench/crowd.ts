import { setTimeout as sleep } from "node:timers/promises";
import type { WebSocket } from "ws";
import { print } from "../../../src/programs/shared/cli.ts";
import { makeUser } from "../accounts.ts";
import { callbackPath, closeSockets, openSocket, seqOf, streamPath } from "../job-socket.ts";
import { until } from "../product.ts";
import { forEachConcurrently, Quantiles } from "../stats.ts";
import { residentMib } from "../usage.ts";
import type { BenchContext } from "./context.ts";

/** Very many sockets at once: every one of them gets every message of its job, in order. */

const MESSAGES = 5;
const AT_ONCE = 32;
const RETRY_MS = 1_000;
const MAX_WAIT_MS = 120_000;

export async function benchCrowd(context: BenchContext): Promise<void> {
  const { product, report, isQuick } = context;
  const jobs = context.jobs ?? (isQuick ? 50 : 1_000);
  const { socketsPerJob } = context;
  const total = jobs * socketsPerJob;
  const { token } = await makeUser(product.dataDir, "bench-crowd@example.com");
  const names = Array.from({ length: jobs }, () => crypto.randomUUID());
  const before = residentMib(product.pidOf("worker"));

  print(`Opening ${total} sockets.`);
  const tookMs = new Quantiles();
  let faults = 0;
  let closed = 0;
  const read: number[] = new Array(total).fill(0);
  const sockets: WebSocket[] = [];
  const open = async (i: number) => {
    const socket = await openSocket({
      url: product.url,
      path: streamPath(names[i % jobs] ?? ""),
      token,
      onText: (text) => {
        const seq = seqOf(text);
        if (seq !== (read[i] ?? 0) + 1) faults++;
        read[i] = seq;
        tookMs.add(performance.now() - Number(/"sent_ms":([\d.]+)/.exec(text)?.[1]));
      },
    });
    socket.on("close", () => closed++);
    sockets.push(socket);
  };
  const openingMs = performance.now();
  await forEachConcurrently([...read.keys()], open, AT_ONCE);
  report.add({
    what: `sockets opened, ${total} in all, on ${jobs} jobs`,
    value: (1000 * total) / (performance.now() - openingMs),
    unit: "/s",
    details: { "workerd MiB before": before, "MiB with them": residentMib(product.pidOf("worker")) },
  });

  const postingMs = performance.now();
  // As a careful subscriber: again until it is taken, under the same key.
  const refused: Record<string, number> = {};
  const post = async (i: number) => {
    for (;;) {
      const response = await fetch(`${product.url}${callbackPath(names[i % jobs] ?? "")}`, {
        method: "POST",
        headers: {
          Authorization: `Bearer ${token}`,
          "Content-Type": "application/json",
          "Idempotency-Key": String(i),
        },
        body: `[{"sent_ms":${performance.now()}}]`,
      });
      await response.arrayBuffer();
      if (response.status === 200) break;
      refused[response.status] = (refused[response.status] ?? 0) + 1;
      await sleep(RETRY_MS);
    }
  };
  await forEachConcurrently([...new Array(jobs * MESSAGES).keys()], post, AT_ONCE);
  const expected = total * MESSAGES;
  await until(() => tookMs.count >= expected, MAX_WAIT_MS).catch(() => {});
  report.add({
    what: `messages delivered to them, ${MESSAGES} to each`,
    value: (1000 * tookMs.count) / (performance.now() - postingMs),
    unit: "/s",
    details: {
      "p50 ms": tookMs.at(0.5),
      "p99 ms": tookMs.at(0.99),
      "workerd MiB": residentMib(product.pidOf("worker")),
    },
  });
  report.require({
    what: "every socket got every message of its job, in order, and none was closed",
    isKept: read.every((seq) => seq === MESSAGES) && faults === 0 && closed === 0,
    details: { messages: tookMs.count, of: expected, faults, closed, "refused at first": JSON.stringify(refused) },
  });
  closeSockets(sockets);
}
