import { describe, expect, it } from "vitest";
import { newAgent, newApp, send, uniqueName } from "../support.ts";
import { multi, values } from "./requests.ts";

describe("a batch from a bridge", () => {
  it("is stored except for a field with a lone surrogate, which is rejected by name", async () => {
    const { token } = await newApp({ broker: true });
    const [one, two] = await Promise.all([newAgent(), newAgent()]);
    const messageOf = ({ apId }: { apId: string }, report: object) => ({
      ap_id: apId,
      received_at: Date.now(),
      report,
    });
    const messages = [messageOf(one, { a: 1, t: "\udc00" }), messageOf(two, { a: 2 })];
    const response = await send("POST", "/api/v1/bridge/data", { messages }, token);
    expect(await response.json()).toMatchObject({
      results: [
        { accepted: 1, rejected: [{ field: "t", reason: "is a text with a lone surrogate" }] },
        { accepted: 1, rejected: [] },
      ],
    });
  });

  it("is stored for each existing agent, and other messages get an error", async () => {
    const { token } = await newApp({ broker: true });
    const [one, two] = await Promise.all([newAgent(), newAgent()]);
    const received_at = Date.now() - 1_000;
    const messages = [
      { ap_id: one.apId, received_at, report: { a: 1, list: [] } },
      {
        ap_id: two.apId,
        received_at,
        report: { samples: [{ ts: received_at, payload: { a: 2 } }], configuration: { k: 1 } },
      },
      { ap_id: uniqueName(), received_at, report: { a: 3 } },
      { ap_id: one.apId, received_at, report: ["not an object"] },
      { ap_id: one.apId, received_at, report: { ap_id: two.apId, a: 4 } },
    ];
    for (let i = 0; i < 2; i++) {
      const response = await send("POST", "/api/v1/bridge/data", { messages }, token);
      expect(await response.json()).toEqual({
        status: "success",
        results: [
          { accepted: 1, rejected: [{ field: "list", reason: "is an array" }] },
          { accepted: 1, rejected: [] },
          { error: "Agent not found" },
          { error: "Input should be a valid dictionary" },
          { error: "Not enough permissions" },
        ],
      });
    }
    expect(values((await multi(one.apId, one.token, "a")).series)).toEqual({ a: [1] });
    expect(values((await multi(two.apId, two.token, "a")).series)).toEqual({ a: [2] });
  });
});
