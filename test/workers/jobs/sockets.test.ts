import { runInDurableObject } from "cloudflare:test";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CredentialRef } from "../../../src/accounts/login/credential-check.ts";
import { type FlowState, throttle } from "../../../src/jobs/producers/flow-control.ts";
import type { Reader } from "../../../src/jobs/stream/handshake.ts";
import { MessageBuffer } from "../../../src/jobs/stream/message-buffer.ts";
import {
  nothingUnacknowledged,
  recordAcknowledged,
  recordSent,
  unacknowledgedBytes,
} from "../../../src/jobs/stream/socket-attachment.ts";
import { JobSockets } from "../../../src/jobs/stream/sockets.ts";
import { asJsonText } from "../../../src/lib/encoding.ts";
import { BUFFER_LIMITS } from "../../../src/schemas/stream-protocol.ts";
import { Client, handshake, newJob, someReader } from "./job-support.ts";

const MIB = 1024 * 1024;

type AccessQuery = PromiseWithResolvers<boolean> & { name: string };

interface TestSockets {
  clock: { ms: number };
  buffer: MessageBuffer;
  sockets: JobSockets;
  /** Running queries about readers' access, for the test to resolve. */
  queries: AccessQuery[];
  connect(name?: string, target?: Reader["target"]): Promise<Client>;
  post(data?: string): number;
  state: DurableObjectState;
}

/** Runs a test with sockets inside an object. The test controls the clock and the results of access checks. */
function withSockets<R>(test: (sockets: TestSockets) => Promise<R>, unacknowledgedBytes = 1_000): Promise<R> {
  return runInDurableObject(newJob(), async (_, ctx) => {
    const clock = { ms: 1_800_000_000_000 };
    const now = () => clock.ms;
    const buffer = new MessageBuffer({ storage: ctx.storage, limits: BUFFER_LIMITS, now });
    const queries: AccessQuery[] = [];
    const isCredentialCurrent = ({ name }: CredentialRef) => {
      const query = Promise.withResolvers<boolean>();
      queries.push({ ...query, name });
      return query.promise;
    };
    const sockets = new JobSockets({
      ctx,
      buffer,
      isCredentialCurrent,
      now,
      limits: { sockets: 4, unacknowledgedBytes },
    });
    const reader = await someReader();
    const connect = async (name = "one", target?: Reader["target"]) =>
      new Client(sockets.accept(await handshake({ reader: { ...reader, name, target } }), clock.ms));
    const post = (data = "[]") => {
      const appended = buffer.append({ type: "agent_data", data: asJsonText(data) });
      return appended.outcome === "stored" ? appended.seq : 0;
    };
    return await test({ clock, buffer, sockets, queries, connect, post, state: ctx });
  });
}

describe("the sockets of a job", () => {
  it("are not checked for five seconds after a check, then once for several messages", () =>
    withSockets(async ({ clock, sockets, queries, connect, post }) => {
      const client = await connect();
      clock.ms += 5_000;
      post();
      await sockets.deliver();
      expect(queries.length).toBe(0);
      clock.ms += 1;
      post();
      const first = sockets.deliver();
      post();
      const second = sockets.deliver();
      await client.receives(1);
      expect(queries.length).toBe(1);
      queries[0]?.resolve(true);
      await Promise.all([first, second]);
      await client.receives(3);
      expect(client.seqs).toEqual([1, 2, 3]);
    }));

  it("are checked once per reader", () =>
    withSockets(async ({ clock, sockets, queries, connect, post }) => {
      const clients = [await connect("one"), await connect("one"), await connect("two")];
      clock.ms += 6_000;
      post();
      const first = sockets.deliver();
      expect(queries.map(({ name }) => name).sort()).toEqual(["one", "two"]);
      for (const { resolve } of queries) resolve(true);
      await first;
      for (const client of clients) await client.receives(1);
      clock.ms += 6_000;
      post();
      const second = sockets.deliver();
      expect(queries.map(({ name }) => name).sort()).toEqual(["one", "one", "two", "two"]);
      for (const { resolve } of queries) resolve(true);
      await second;
      for (const client of clients) await client.receives(2);
    }));

  it("get messages in order if one connects while another is being checked", () =>
    withSockets(async ({ clock, sockets, queries, connect, post }) => {
      const early = await connect();
      clock.ms += 6_000;
      post();
      const first = sockets.deliver();
      const late = await connect();
      post();
      const second = sockets.deliver();
      await late.receives(2);
      await early.receives(0);
      queries[0]?.resolve(true);
      await Promise.all([first, second]);
      await early.receives(2);
      expect([early.seqs, late.seqs]).toEqual([
        [1, 2],
        [1, 2],
      ]);
    }));

  it("get messages that another socket acknowledged meanwhile", () =>
    withSockets(async ({ clock, buffer, sockets, queries, connect, post }) => {
      const early = await connect();
      clock.ms += 6_000;
      post();
      const delivery = sockets.deliver();
      const late = await connect();
      await late.receives(1);
      buffer.acknowledge(1, sockets.neededAfter);
      expect([buffer.acknowledgedUpTo, buffer.messages]).toEqual([1, 1]);
      queries[0]?.resolve(true);
      await delivery;
      await early.receives(1);
      buffer.release(sockets.neededAfter);
      expect(buffer.messages).toBe(0);
    }));

  it("are checked after five idle minutes, then once a minute until a check succeeds", () =>
    withSockets(async ({ clock, sockets, queries, connect }) => {
      await connect();
      const dueMs = clock.ms + 300_000;
      clock.ms += 299_000;
      expect(sockets.nextDueMs).toBe(dueMs);
      clock.ms += 2_000;
      const check = sockets.recheck();
      queries[0]?.reject(new Error("away"));
      await check;
      expect(sockets.nextDueMs).toBe(dueMs + 60_000);
      clock.ms += 58_000;
      expect(sockets.nextDueMs).toBe(dueMs + 60_000);
    }));

  it("get their messages later if a check fails", () =>
    withSockets(async ({ clock, sockets, queries, connect, post }) => {
      const client = await connect();
      clock.ms += 6_000;
      post();
      const delivery = sockets.deliver();
      queries[0]?.reject(new Error("away"));
      await delivery;
      await client.receives(0);
      expect(sockets.nextDueMs).toBe(clock.ms + 5_000);
      clock.ms += 5_000;
      const again = sockets.deliver();
      queries[1]?.resolve(true);
      await again;
      await client.receives(1);
    }));

  it("are closed when their reader loses access, without delaying the others", () =>
    withSockets(async ({ clock, sockets, queries, connect, post }) => {
      const [revoked, allowed] = [await connect("revoked"), await connect("allowed")];
      clock.ms += 6_000;
      post();
      const delivery = sockets.deliver();
      queries.find(({ name }) => name === "allowed")?.resolve(true);
      await allowed.receives(1);
      queries.find(({ name }) => name === "revoked")?.resolve(false);
      await delivery;
      await revoked.isClosed(4403);
      expect(revoked.texts).toEqual([]);
    }));

  it("are all checked again after a running check, which may not have seen the change", () =>
    withSockets(async ({ clock, sockets, queries, connect, post }) => {
      const client = await connect();
      clock.ms += 6_000;
      post();
      const delivery = sockets.deliver();
      const recheck = sockets.recheckAll();
      queries[0]?.resolve(true);
      await client.receives(1);
      await expect.poll(() => queries.length).toBe(2);
      queries[1]?.resolve(false);
      await Promise.all([delivery, recheck]);
      await client.isClosed(4403);
    }));

  it("get nothing until a failed recheck was retried", () =>
    withSockets(async ({ clock, sockets, queries, connect, post }) => {
      const client = await connect();
      clock.ms += 1_000;
      const recheck = sockets.recheckAll();
      await expect.poll(() => queries.length).toBe(1);
      queries[0]?.reject(new Error("away"));
      await recheck;
      expect(sockets.nextDueMs).toBeLessThanOrEqual(clock.ms + 60_000);
      post();
      const delivery = sockets.deliver();
      await client.receives(0);
      queries[1]?.resolve(true);
      await delivery;
      await client.receives(1);
    }));

  it("are closed at exactly the limit of unacknowledged bytes", () =>
    withSockets(async ({ sockets, connect, post }) => {
      const client = await connect();
      for (let i = 0; i < 10; i++) post(JSON.stringify("x".repeat(98)));
      await sockets.deliver();
      await client.receives(10);
      expect(client.closed).toBeUndefined();
      post();
      await sockets.deliver();
      await client.isClosed(1013);
      expect(client.texts.length).toBe(10);
    }));
});

describe("a socket's attachment", () => {
  it("stays within 2 KB, even for the longest names", () =>
    withSockets(async ({ clock, sockets, connect, post, state }) => {
      clock.ms += 1;
      const client = await connect("é".repeat(254), { apId: "a".repeat(64), role: "operator" });
      for (let i = 0; i < 320; i++) post(JSON.stringify("x".repeat(198)));
      await sockets.deliver();
      await client.receives(320);
      const [attachment] = state.getWebSockets().map((socket): unknown => socket.deserializeAttachment());
      // The platform writes a name outside Latin-1 with two bytes per character.
      expect(JSON.stringify(attachment).length + 254 + 128).toBeLessThan(2_048);
    }, 64_000));
});

describe("the count of unacknowledged bytes", () => {
  it("is never too high, and too low by at most one checkpoint and one message", async () => {
    const maxBytes = 12_800;
    const sizes = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 400 });
    await fc.assert(
      fc.property(sizes, fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })), (messages, chance) => {
        const unacknowledged = nothingUnacknowledged();
        let acknowledged = 0;
        const sent: number[] = [];
        const actual = () => sent.slice(acknowledged).reduce((sum, bytes) => sum + bytes, 0);
        for (const bytes of messages) {
          if (unacknowledgedBytes(unacknowledged) + bytes > maxBytes) break;
          sent.push(bytes);
          recordSent(unacknowledged, sent.length, bytes, maxBytes);
          if (chance.next().value < 0.2) {
            acknowledged = Math.max(acknowledged, Math.round(chance.next().value * sent.length));
            recordAcknowledged(unacknowledged, acknowledged);
          }
          expect(unacknowledgedBytes(unacknowledged)).toBeLessThanOrEqual(actual());
          expect(unacknowledgedBytes(unacknowledged)).toBeGreaterThan(actual() - maxBytes / 32 - 300);
          expect(unacknowledged.notes.length).toBeLessThanOrEqual(33);
        }
        recordAcknowledged(unacknowledged, sent.length);
        expect(unacknowledgedBytes(unacknowledged)).toBe(0);
      }),
    );
  });
});

describe("the throttle of a producer", () => {
  const room = { messages: 10, bytes: 5 * MIB };
  const socket = (unacknowledgedBytes: number, hasAcknowledged: boolean) => ({ unacknowledgedBytes, hasAcknowledged });
  const at = (sockets: FlowState["sockets"], left = room) => throttle({ sockets, room: left }, MIB / 2, 16 * MIB);
  const [go, wait] = [{ go: true, pauseMs: 0 }, { go: false }];

  it("follows the buffer's room if no socket is open", () => {
    expect(at([])).toEqual(go);
    expect(at([], { messages: 0, bytes: 5 * MIB })).toEqual(wait);
    expect(at([], { messages: 10, bytes: MIB / 2 - 1 })).toEqual(wait);
  });

  it("follows the fastest socket that acknowledges", () => {
    const full = { messages: 0, bytes: 0 };
    expect(at([socket(MIB - 1, true), socket(9 * MIB, true), socket(15 * MIB, false)], full)).toEqual(go);
    expect(at([socket(MIB, true), socket(0, false)])).toEqual(wait);
  });

  it("is a constant rate up to the limit if no socket acknowledges", () => {
    expect(at([socket(0, false)])).toEqual({ go: true, pauseMs: 125 });
    expect(at([socket(15.5 * MIB, false)])).toEqual({ go: true, pauseMs: 125 });
    expect(at([socket(15.5 * MIB + 1, false)])).toEqual(wait);
    expect(at([socket(16 * MIB, false), socket(0, false)])).toEqual({ go: true, pauseMs: 125 });
  });
});
