import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { isRepeatable, sendRepeatedly } from "../../../src/dashboard/api/retries.ts";

const LOGIN = "/api/v1/token/";

describe("retries of the page", () => {
  it.each<[string, string, string, object, boolean]>([
    ["reads", "GET", "/api/v1/overview", {}, true],
    ["heads", "HEAD", "/api/v1/overview", {}, true],
    ["logins", "POST", LOGIN, {}, true],
    ["posts with an idempotency key", "POST", "/api/v1/callback/agent_data", { "Idempotency-Key": "k" }, true],
    ["commands", "POST", "/api/v1/send_command", {}, false],
    ["sign-ups", "POST", "/api/v1/users/signup", {}, false],
    ["changes", "PUT", "/api/v1/agents/a", {}, false],
    ["deletions", "DELETE", "/api/v1/agents/a", {}, false],
  ])("classify %s", (_, method, path, headers, expected) => {
    expect(isRepeatable(method, path, new Headers(headers as Record<string, string>))).toBe(expected);
  });

  describe("sendRepeatedly", () => {
    /** The server's reaction to each request, in order. Afterwards it responds as the service does. */
    type Fault = "hang up" | { status: number; headers?: Record<string, string> };
    let faults: Fault[] = [];
    let requests = 0;
    let url: string;
    const server = createServer((_, response) => {
      requests++;
      const fault = faults.shift();
      if (fault === "hang up") response.destroy();
      else if (fault !== undefined) response.writeHead(fault.status, fault.headers).end("not the service");
      else response.writeHead(200, { "X-Request-Id": "r" }).end("the service");
    });

    beforeAll(async () => {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    });
    afterAll(() => void server.close());
    beforeEach(() => {
      requests = 0;
    });

    const DELAYS_MS = [1, 1];
    const request = async (signal?: AbortSignal) =>
      await sendRepeatedly(async () => await fetch(url), signal, DELAYS_MS);

    it.each<[string, Fault[]]>([
      ["the connection breaks", ["hang up", "hang up"]],
      ["a proxy responds with 500", [{ status: 500 }]],
      ["a proxy responds with 502 and 503", [{ status: 502 }, { status: 503 }]],
    ])("repeats the request if %s", async (_, given) => {
      faults = [...given];
      const response = await request();
      expect([response.status, await response.text()]).toEqual([200, "the service"]);
      expect(requests).toBe(given.length + 1);
    });

    it.each([500, 503, 429, 404, 401])(
      "does not repeat a request to which the service responds with %i",
      async (status) => {
        faults = [{ status, headers: { "X-Request-Id": "r" } }];
        expect((await request()).status).toBe(status);
        expect(requests).toBe(1);
      },
    );

    it("ends after three attempts with the last response or error", async () => {
      faults = [{ status: 500 }, { status: 500 }, { status: 502 }];
      expect((await request()).status).toBe(502);
      expect(requests).toBe(3);
      faults = ["hang up", "hang up", "hang up"];
      await expect(request()).rejects.toThrow(TypeError);
      expect(requests).toBe(6);
    });

    it("rejects at once on abort during a request", { timeout: 10_000 }, async () => {
      const abort = new AbortController();
      const send = async () => {
        abort.abort(new Error("gone"));
        return await fetch(url, { signal: abort.signal });
      };
      await expect(sendRepeatedly(send, abort.signal, [60_000])).rejects.toThrow("gone");
    });

    it("rejects at once on abort during a pause", async () => {
      const abort = new AbortController();
      faults = [{ status: 500 }, { status: 500 }];
      const sending = sendRepeatedly(async () => await fetch(url), abort.signal, [60_000]);
      await expect.poll(() => requests).toBe(1);
      abort.abort(new Error("gone"));
      await expect(sending).rejects.toThrow("gone");
      expect(requests).toBe(1);
      faults = [];
    });
  });
});
