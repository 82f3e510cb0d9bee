import { describe, expect, it } from "vitest";
import { encodeGap, encodeMessage, type StoredMessage } from "../../../src/jobs/stream/envelope.ts";
import { asJsonText } from "../../../src/lib/encoding.ts";
import { NOW } from "./buffer-support.ts";

describe("the encoding of messages", () => {
  const storedMessage = (over: Omit<Partial<StoredMessage>, "data"> & { data?: string }): StoredMessage => ({
    seq: 3,
    type: "agent_data",
    tsMs: NOW,
    final: false,
    bytes: 11,
    ...over,
    data: asJsonText(over.data ?? '[{"a":1.0}]'),
  });

  it("carries the data unchanged, in an envelope or bare", () => {
    const ts = new Date(NOW).toISOString();
    expect(encodeMessage("envelope", 'j"1', storedMessage({}))).toBe(
      `{"job_number":"j\\"1","seq":3,"type":"agent_data","ts":"${ts}","final":false,"data":[{"a":1.0}]}`,
    );
    expect(encodeMessage("bare", "j", storedMessage({}))).toBe('[{"a":1.0}]');
  });

  it("encodes only arrays of data for a bare socket", () => {
    expect(encodeMessage("bare", "j", storedMessage({ type: "status", data: "[]" }))).toBeUndefined();
    expect(encodeMessage("bare", "j", storedMessage({ type: "error", data: "[]" }))).toBeUndefined();
    expect(encodeMessage("bare", "j", storedMessage({ type: "command", data: '{"a":1}' }))).toBeUndefined();
    expect(encodeMessage("bare", "j", storedMessage({ type: "emulator", data: " \n[]" }))).toBe(" \n[]");
    expect(encodeGap("bare", "j", { fromSeq: 1, toSeq: 2 }, NOW)).toBeUndefined();
  });

  it("reports a gap with the number of the last missing message", () => {
    expect(JSON.parse(encodeGap("envelope", "j", { fromSeq: 2, toSeq: 9 }, NOW) ?? "")).toMatchObject({
      seq: 9,
      type: "gap",
      final: false,
      data: [{ from_seq: 2, to_seq: 9 }],
    });
  });
});
