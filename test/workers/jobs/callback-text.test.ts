import { describe, expect, it } from "vitest";
import { bearer, request, signedUp, uniqueName } from "../support.ts";

/** `JSON.parse` changes each of these numbers; `JSON.stringify` drops the spaces and moves the key "1" to the front. */
const TEXT =
  ' [ {"b" : 12345678901234567890, "1": 1e400 ,"a":\t0.1000000000000000055},\r\n {"é":"\\u00e9 \\ud800"} ]\n';

const post = (kind: string, jobNumber: string, token: string, body: string | Uint8Array) =>
  request(`/api/v1/callback/${kind}?job_number=${jobNumber}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...bearer(token) },
    body,
  });

/** Connects a reader and returns the texts that it has received so far. */
async function read(path: string, token: string): Promise<string[]> {
  const { webSocket } = await request(path, { headers: { Upgrade: "websocket", ...bearer(token) } });
  if (webSocket === null) throw new Error("The request was not upgraded");
  const texts: string[] = [];
  webSocket.addEventListener("message", ({ data }) => void texts.push(String(data)));
  webSocket.accept();
  return texts;
}

describe("a callback's text", () => {
  it.each(["agent_data", "agent_details", "emulator", "command"])(
    "arrives byte for byte in the envelope and on a bare socket: %s",
    async (kind) => {
      const { token } = await signedUp();
      const job = uniqueName();
      expect((await post(kind, job, token, TEXT)).status).toBe(200);
      const envelope = await read(`/api/v1/ws/${job}`, token);
      const bare = await read(`/api/v1/callback/agent_data/ws/${job}`, token);
      await expect.poll(() => [envelope.length, bare.length]).toEqual([1, 1]);
      expect(bare).toEqual([TEXT]);
      expect(envelope[0]?.slice(envelope[0].indexOf(',"data":'))).toBe(`,"data":${TEXT}}`);
    },
  );

  it("arrives without the byte order mark that preceded it", async () => {
    const { token } = await signedUp();
    const job = uniqueName();
    await post("agent_data", job, token, new TextEncoder().encode("\ufeff[1.0]"));
    const bare = await read(`/api/v1/callback/agent_data/ws/${job}`, token);
    await expect.poll(() => bare).toEqual(["[1.0]"]);
  });

  it.each([
    ["invalid JSON", "[1,]", 422],
    ["JSON that is followed by more text", "[1]}", 422],
    ["JSON that is nested too deeply", `${"[".repeat(33)}${"]".repeat(33)}`, 422],
    ["a value that is no array", '{"a":1}', 422],
    ["bytes that are not UTF-8", new Uint8Array([0x5b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x5d]), 400],
    ["more than 1 MiB", `[${" ".repeat(1024 * 1024)}]`, 413],
  ])("is rejected if it is %s", async (_, body, status) => {
    const { token } = await signedUp();
    expect((await post("agent_data", uniqueName(), token, body)).status).toBe(status);
  });
});
