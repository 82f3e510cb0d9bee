import { randomUUID } from "node:crypto";
import { callbackPath, type Envelope, historyPath, openReader, type Queued } from "../job-socket.ts";
import type { Callers } from "./account-steps.ts";
import type { SmokeContext } from "./smoke.ts";
import { expectEqual, expectThat } from "./steps.ts";
import type { Point } from "./telemetry-steps.ts";

/** Reads the history of an agent over two connections: the second one resumes where the first one ended. */
export async function checkHistoryStream(context: SmokeContext, callers: Callers, metric: string, points: Point[]) {
  const { client, created } = context;
  const { user, apId } = callers;
  const range = { apId, fromMs: points[0]?.tsMs ?? 0, toMs: (points.at(-1)?.tsMs ?? 0) + 1 };
  const { job_number: job } = await client.call<Queued>(historyPath(range), { method: "POST", token: user });
  created.add(`/api/v1/jobs/${job}`);
  const messages: Envelope<unknown[]>[] = [];
  const rowsOf = () => messages.filter(({ type }) => type === "agent_data").flatMap(({ data }) => data);
  const readUntil = async (isDone: () => boolean): Promise<void> => {
    const reader = await openReader(client, user, job, messages.at(-1)?.seq);
    try {
      while (!isDone()) messages.push(await reader.next());
      reader.acknowledge(messages.at(-1)?.seq ?? 0);
    } finally {
      reader.close();
    }
  };
  await readUntil(() => rowsOf().length > 0);
  expectThat(messages.at(-1)?.final === false, "The whole history came in one message");
  await readUntil(() => messages.at(-1)?.final === true);
  const seqs = messages.map(({ seq }) => seq);
  const consecutive = messages.map((_, i) => i + 1);
  expectEqual("The sequence numbers", seqs, consecutive);
  const expected = points.map(({ tsMs, value }) => ({ time: new Date(tsMs).toISOString(), field: metric, value }));
  expectEqual("The rows of the history", rowsOf(), expected);
}

/** Posts callbacks as an app, one of them twice under the same key, and reads them. */
export async function checkCallbacks({ client, created }: SmokeContext, { user, app }: Callers, name: string) {
  const job = `${name}-stream`;
  created.add(`/api/v1/jobs/${job}`);
  const reader = await openReader(client, user, job);
  try {
    const post = async (body: unknown[], key: string): Promise<number> => {
      const request = { token: app, body, headers: { "Idempotency-Key": key } };
      return (await client.call<{ seq: number }>(callbackPath(job), request)).seq;
    };
    const [key, first, second] = [randomUUID(), ["first", { of: 2 }], ["second"]];
    expectEqual("The number of the first callback", await post(first, key), 1);
    expectEqual("The number of the first callback, posted again", await post(first, key), 1);
    expectEqual("The number of the second callback", await post(second, randomUUID()), 2);
    for (const expected of [first, second]) expectEqual("The data of a callback", (await reader.next()).data, expected);
    reader.acknowledge(2);
  } finally {
    reader.close();
  }
}
