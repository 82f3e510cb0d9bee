import { env, runInDurableObject } from "cloudflare:test";
import { decodeJwt } from "jose";
import { afterEach, beforeEach, expect, vi } from "vitest";
import { encodeHandshake, type Reader, type StreamHandshake } from "../../../src/jobs/stream/handshake.ts";
import type { JobStream } from "../../../src/jobs/stream/job-stream.ts";
import { signedUp } from "../support.ts";

/** A job's Durable Object, its readers, and a clock that the tests move. */

export type Job = DurableObjectStub<JobStream>;

export const newJob = (): Job => env.JOB_STREAM.getByName(crypto.randomUUID());

/**
 * Replaces the clock. The object runs in the tests' isolate and so uses the same clock: either the real time plus `forwardMs`, or one that
 * stands still until a test moves it.
 */
export function movableClock({ standsStill = false } = {}): { forwardMs: number } {
  const clock = { forwardMs: 0 };
  const realNow = Date.now;
  let startMs: number | undefined;
  beforeEach(() => {
    clock.forwardMs = 0;
    startMs = standsStill ? realNow() : undefined;
    vi.spyOn(Date, "now").mockImplementation(() => (startMs ?? realNow()) + clock.forwardMs);
  });
  afterEach(() => {
    vi.restoreAllMocks();
    // An object created during the test may keep this clock, and later tests use the same object.
    clock.forwardMs = 0;
    startMs = undefined;
  });
  return clock;
}

let user: Promise<Reader> | undefined;

/** Returns the reader of an existing account, with a token that does not expire. */
export async function someReader(): Promise<Reader> {
  user ??= readerOf(signedUp());
  return { ...(await user), expiresAtMs: Number.MAX_SAFE_INTEGER };
}

export async function readerOf(account: Promise<{ token: string }>): Promise<Reader> {
  const { sub = "", exp = 0, ver } = decodeJwt<{ ver: number }>((await account).token);
  return { kind: "user", name: sub, version: ver, expiresAtMs: exp * 1000 };
}

export interface Envelope {
  job_number: string;
  seq: number;
  type: string;
  ts: string;
  final: boolean;
  data: unknown;
}

/** The client's end of a socket, and the texts that it has received. */
export class Client {
  readonly texts: string[] = [];
  readonly #socket: WebSocket;
  closed: { code: number; reason: string } | undefined;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.accept();
    socket.addEventListener("message", ({ data }) => {
      this.texts.push(String(data));
    });
    socket.addEventListener("close", ({ code, reason }) => {
      this.closed = { code, reason };
    });
  }

  get messages(): Envelope[] {
    return this.texts.map((text) => JSON.parse(text) as Envelope);
  }

  get seqs(): number[] {
    return this.messages.map(({ seq }) => seq);
  }

  send(message: unknown): void {
    this.#socket.send(
      message instanceof ArrayBuffer ? message : typeof message === "string" ? message : JSON.stringify(message),
    );
  }

  disconnect(): void {
    this.#socket.close(1000, "bye");
  }

  /** Waits until `count` messages have arrived in total, and a little longer to catch an unexpected one. */
  async receives(count: number): Promise<void> {
    await soon(() => this.texts.length >= count || this.closed !== undefined);
    await scheduler.wait(2);
    expect(this.texts.length).toBe(count);
  }

  async isClosed(code: number): Promise<void> {
    await soon(() => this.closed !== undefined);
    expect(this.closed?.code).toBe(code);
  }
}

export async function soon(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 400 && !(await condition()); i++) await scheduler.wait(i < 20 ? 1 : 5);
}

export async function handshake(over: Partial<StreamHandshake> = {}): Promise<StreamHandshake> {
  return { jobNumber: "job-1", reader: await someReader(), form: "envelope", ...over };
}

export async function upgrade(
  job: Job,
  over: Partial<StreamHandshake> = {},
  protocols: string | null = null,
): Promise<Response> {
  return await job.fetch(encodeHandshake(await handshake(over), protocols));
}

export async function connect(job: Job, over: Partial<StreamHandshake> = {}): Promise<Client> {
  const response = await upgrade(job, over);
  if (response.webSocket === null) throw new Error(`Refused: ${response.status} ${await response.text()}`);
  return new Client(response.webSocket);
}

export const alarmOf = (job: Job): Promise<number | null> =>
  runInDurableObject(job, (_, { storage }) => storage.getAlarm());

export const tablesOf = (job: Job): Promise<unknown[]> =>
  runInDurableObject(job, (_, { storage }) =>
    storage.sql.exec("SELECT name FROM sqlite_master WHERE name NOT LIKE '_cf_%'").toArray(),
  );

/** Expects that the object has neither tables nor an alarm. */
export async function expectNothingLeft(job: Job): Promise<void> {
  expect([await tablesOf(job), await alarmOf(job)]).toEqual([[], null]);
}
