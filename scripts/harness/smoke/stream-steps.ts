import { randomUUID } from "node:crypto";
import { type Api, unexpected } from "../api.ts";
import { callbackPath, requestHistory } from "../job-socket.ts";
import type { Callers } from "./account-steps.ts";
import type { Made } from "./cleanup.ts";
import { type Message, openReader } from "./reader.ts";
import { expectEqual, expectThat } from "./steps.ts";
import type { Point } from "./telemetry-steps.ts";

/** Jobs, as those know them who read their streams. */

/** Reads an agent's history over two connections: the second goes on where the first was lost. */
export async function streamsHistory(api: Api, made: Made, callers: Callers, metric: string, points: Point[]) {
  const { user, apId } = callers;
  const range = { apId, fromMs: points[0]?.tsMs ?? 0, toMs: (points.at(-1)?.tsMs ?? 0) + 1 };
  const job = await requestHistory(api.url, user, range);
  made.note(`/api/v1/jobs/${job}`);
  const messages: Message[] = [];
  const rowsOf = () => messages.filter(({ type }) => type === "agent_data").flatMap(({ data }) => data);

  const first = await openReader(api, user, job);
  try {
    while (rowsOf().length === 0) messages.push(await first.next());
    first.acknowledge(messages.at(-1)?.seq ?? 0);
  } finally {
    first.close();
  }
  expectThat(messages.at(-1)?.final === false, "The whole history came in one message");
  const second = await openReader(api, user, job, messages.at(-1)?.seq);
  try {
    while (messages.at(-1)?.final !== true) messages.push(await second.next());
    second.acknowledge(messages.at(-1)?.seq ?? 0);
  } finally {
    second.close();
  }
  expectEqual(
    "The numbers of the messages",
    messages.map(({ seq }) => seq),
    messages.map((_, i) => i + 1),
  );
  const expected = points.map(({ tsMs, value }) => ({ time: new Date(tsMs).toISOString(), field: metric, value }));
  expectEqual("The rows of the history", rowsOf(), expected);
}

/** What an app posts to a job comes to its reader; posted twice under the same key, once. */
export async function passesOnCallbacks(api: Api, made: Made, { user, app }: Callers, name: string): Promise<void> {
  const job = `${name}-stream`;
  made.note(`/api/v1/jobs/${job}`);
  const reader = await openReader(api, user, job);
  try {
    const post = async (data: unknown[], key: string): Promise<number> => {
      const request = { token: app, body: data, headers: { "Idempotency-Key": key } };
      const answer = await api.send("POST", callbackPath(job), request);
      if (answer.status !== 200) throw unexpected("A callback", answer);
      return (JSON.parse(answer.text) as { seq: number }).seq;
    };
    const [key, first, second] = [randomUUID(), ["first", { of: 2 }], ["second"]];
    expectEqual("The number of the first callback", await post(first, key), 1);
    expectEqual("The number of the first callback, posted again", await post(first, key), 1);
    expectEqual("The number of the second callback", await post(second, randomUUID()), 2);
    for (const expected of [first, second]) expectEqual("What a callback brings", (await reader.next()).data, expected);
    reader.acknowledge(2);
  } finally {
    reader.close();
  }
}
