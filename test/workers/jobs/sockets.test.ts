import { runInDurableObject } from "cloudflare:test";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CredentialRef } from "../../../src/accounts/login/credential-check.ts";
import { type FlowState, throttle } from "../../../src/jobs/producers/flow-control.ts";
import { MessageBuffer } from "../../../src/jobs/stream/message-buffer.ts";
import { JobSockets } from "../../../src/jobs/stream/sockets.ts";
import {
  noneUnacknowledged,
  recordAcknowledged,
  recordSent,
  unacknowledgedBytes,
} from "../../../src/jobs/stream/unacknowledged.ts";
import { BUFFER_LIMITS } from "../../../src/schemas/stream-protocol.ts";
import { Client, newJob, opening, someReader } from "./job-support.ts";

const MIB = 1024 * 1024;

type Asked = PromiseWithResolvers<boolean> & { name: string };

interface World {
  clock: { ms: number };
  buffer: MessageBuffer;
  sockets: JobSockets;
  /** What is asked about readers' access, for the test to answer. */
  asked: Asked[];
  connect(name?: string): Promise<Client>;
  post(data?: string): number;
  state: DurableObjectState;
}

/** Sockets inside an object, with the clock and the answers about access in the test's hand. */
function withSockets<R>(test: (world: World) => Promise<R>, unacknowledgedBytes = 1_000): Promise<R> {
  return runInDurableObject(newJob(), async (_, ctx) => {
    const clock = { ms: 1_800_000_000_000 };
    const now = () => clock.ms;
    const buffer = new MessageBuffer({ storage: ctx.storage, limits: BUFFER_LIMITS, now });
    const asked: Asked[] = [];
    const isCredentialCurrent = ({ name }: CredentialRef) => {
      const answer = Promise.withResolvers<boolean>();
      asked.push({ ...answer, name });
      return answer.promise;
    };
    const sockets = new JobSockets({
      ctx,
      buffer,
      isCredentialCurrent,
      now,
      limits: { sockets: 4, unacknowledgedBytes },
    });
    const reader = await someReader();
    const connect = async (name = "one") =>
      new Client(sockets.accept(await opening({ reader: { ...reader, name } }), clock.ms));
    const post = (data = "[]") => {
      const appended = buffer.append({ type: "agent_data", data });
      return appended.outcome === "stored" ? appended.seq : 0;
    };
    return await test({ clock, buffer, sockets, asked, connect, post, state: ctx });
  });
}

describe("the sockets of a job", () => {
  it("are not asked about for five seconds after a check, and once for many messages after that", () =>
    withSockets(async ({ clock, sockets, asked, connect, post }) => {
      const client = await connect();
      clock.ms += 5_000;
      post();
      await sockets.deliver();
      expect(asked.length).toBe(0);
      clock.ms += 1;
      post();
      const first = sockets.deliver();
      post();
      const second = sockets.deliver();
      await client.hears(1);
      expect(asked.length).toBe(1);
      asked[0]?.resolve(true);
      await Promise.all([first, second]);
      await client.hears(3);
      expect(client.seqs).toEqual([1, 2, 3]);
    }));

  it("of one reader are asked about once, those of another besides", () =>
    withSockets(async ({ clock, sockets, asked, connect, post }) => {
      const clients = [await connect("one"), await connect("one"), await connect("two")];
      clock.ms += 6_000;
      post();
      const first = sockets.deliver();
      expect(asked.map(({ name }) => name).sort()).toEqual(["one", "two"]);
      for (const { resolve } of asked) resolve(true);
      await first;
      for (const client of clients) await client.hears(1);
      clock.ms += 6_000;
      post();
      const second = sockets.deliver();
      expect(asked.map(({ name }) => name).sort()).toEqual(["one", "one", "two", "two"]);
      for (const { resolve } of asked) resolve(true);
      await second;
      for (const client of clients) await client.hears(2);
    }));

  it("keep their order when one joins while another is being checked", () =>
    withSockets(async ({ clock, sockets, asked, connect, post }) => {
      const early = await connect();
      clock.ms += 6_000;
      post();
      const first = sockets.deliver();
      const late = await connect();
      post();
      const second = sockets.deliver();
      await late.hears(2);
      await early.hears(0);
      asked[0]?.resolve(true);
      await Promise.all([first, second]);
      await early.hears(2);
      expect([early.seqs, late.seqs]).toEqual([
        [1, 2],
        [1, 2],
      ]);
    }));

  it("get what another has acknowledged meanwhile", () =>
    withSockets(async ({ clock, buffer, sockets, asked, connect, post }) => {
      const early = await connect();
      clock.ms += 6_000;
      post();
      const delivery = sockets.deliver();
      const late = await connect();
      await late.hears(1);
      buffer.acknowledge(1, sockets.neededAfter);
      expect([buffer.acknowledgedUpTo, buffer.messages]).toEqual([1, 1]);
      asked[0]?.resolve(true);
      await delivery;
      await early.hears(1);
      buffer.release(sockets.neededAfter);
      expect(buffer.messages).toBe(0);
    }));

  it("that are idle are checked after five minutes, then once a minute for as long as that cannot be done", () =>
    withSockets(async ({ clock, sockets, asked, connect }) => {
      await connect();
      const dueMs = clock.ms + 300_000;
      clock.ms += 299_000;
      expect(sockets.nextDueMs).toBe(dueMs);
      clock.ms += 2_000;
      const check = sockets.recheck();
      asked[0]?.reject(new Error("away"));
      await check;
      expect(sockets.nextDueMs).toBe(dueMs + 60_000);
      clock.ms += 58_000;
      expect(sockets.nextDueMs).toBe(dueMs + 60_000);
    }));

  it("wait while access cannot be checked, and lose nothing", () =>
    withSockets(async ({ clock, sockets, asked, connect, post }) => {
      const client = await connect();
      clock.ms += 6_000;
      post();
      const delivery = sockets.deliver();
      asked[0]?.reject(new Error("away"));
      await delivery;
      await client.hears(0);
      expect(sockets.nextDueMs).toBe(clock.ms + 5_000);
      clock.ms += 5_000;
      const again = sockets.deliver();
      asked[1]?.resolve(true);
      await again;
      await client.hears(1);
    }));

  it("are closed when access has ended, without holding up the others", () =>
    withSockets(async ({ clock, sockets, asked, connect, post }) => {
      const [gone, fine] = [await connect("gone"), await connect("fine")];
      clock.ms += 6_000;
      post();
      const delivery = sockets.deliver();
      asked.find(({ name }) => name === "fine")?.resolve(true);
      await fine.hears(1);
      asked.find(({ name }) => name === "gone")?.resolve(false);
      await delivery;
      await gone.isClosed(4403);
      expect(gone.texts).toEqual([]);
    }));

  it("are bound in what they leave unacknowledged, exactly where nothing is acknowledged", () =>
    withSockets(async ({ sockets, connect, post }) => {
      const client = await connect();
      for (let i = 0; i < 10; i++) post(JSON.stringify("x".repeat(98)));
      await sockets.deliver();
      await client.hears(10);
      expect(client.closed).toBeUndefined();
      post();
      await sockets.deliver();
      await client.isClosed(1013);
      expect(client.texts.length).toBe(10);
    }));
});

describe("what is known of a socket", () => {
  it("fits in its attachment, whoever reads", () =>
    withSockets(async ({ clock, sockets, connect, post, state }) => {
      clock.ms += 1;
      const client = await connect("é".repeat(254));
      for (let i = 0; i < 320; i++) post(JSON.stringify("x".repeat(198)));
      await sockets.deliver();
      await client.hears(320);
      const [attachment] = state.getWebSockets().map((socket): unknown => socket.deserializeAttachment());
      // In two bytes a character, as the platform writes names that are not Latin.
      expect(JSON.stringify(attachment).length + 254 + 128).toBeLessThan(2_048);
    }, 64_000));
});

describe("what is outstanding", () => {
  it("is counted in the reader's favour by no more than a step and a message, in little room", async () => {
    const maxBytes = 12_800;
    const sizes = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 400 });
    await fc.assert(
      fc.property(sizes, fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })), (messages, chance) => {
        const outstanding = noneUnacknowledged();
        let acknowledged = 0;
        const sent: number[] = [];
        const truth = () => sent.slice(acknowledged).reduce((sum, bytes) => sum + bytes, 0);
        for (const bytes of messages) {
          if (unacknowledgedBytes(outstanding) + bytes > maxBytes) break;
          sent.push(bytes);
          recordSent(outstanding, sent.length, bytes, maxBytes);
          if (chance.next().value < 0.2) {
            acknowledged = Math.max(acknowledged, Math.round(chance.next().value * sent.length));
            recordAcknowledged(outstanding, acknowledged);
          }
          expect(unacknowledgedBytes(outstanding)).toBeLessThanOrEqual(truth());
          expect(unacknowledgedBytes(outstanding)).toBeGreaterThan(truth() - maxBytes / 32 - 300);
          expect(outstanding.notes.length).toBeLessThanOrEqual(33);
        }
        recordAcknowledged(outstanding, sent.length);
        expect(unacknowledgedBytes(outstanding)).toBe(0);
      }),
    );
  });
});

describe("the throttle of a producer", () => {
  const room = { messages: 10, bytes: 5 * MIB };
  const socket = (unacknowledgedBytes: number, hasAcknowledged: boolean) => ({ unacknowledgedBytes, hasAcknowledged });
  const at = (sockets: FlowState["sockets"], left = room) => throttle({ sockets, room: left }, MIB / 2, 16 * MIB);
  const [go, wait] = [{ go: true, pauseMs: 0 }, { go: false }];

  it("is as the buffer has room where nobody reads", () => {
    expect(at([])).toEqual(go);
    expect(at([], { messages: 0, bytes: 5 * MIB })).toEqual(wait);
    expect(at([], { messages: 10, bytes: MIB / 2 - 1 })).toEqual(wait);
  });

  it("is that of the fastest who acknowledges", () => {
    const full = { messages: 0, bytes: 0 };
    expect(at([socket(MIB - 1, true), socket(9 * MIB, true), socket(15 * MIB, false)], full)).toEqual(go);
    expect(at([socket(MIB, true), socket(0, false)])).toEqual(wait);
  });

  it("is a steady one where nobody acknowledges, until the bound", () => {
    expect(at([socket(0, false)])).toEqual({ go: true, pauseMs: 125 });
    expect(at([socket(15.5 * MIB, false)])).toEqual({ go: true, pauseMs: 125 });
    expect(at([socket(15.5 * MIB + 1, false)])).toEqual(wait);
    expect(at([socket(16 * MIB, false), socket(0, false)])).toEqual({ go: true, pauseMs: 125 });
  });
});
