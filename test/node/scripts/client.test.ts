import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { ApiClient } from "../../../scripts/harness/client.ts";

describe("the API client of the harness", () => {
  let server: Server;

  const listen = async (respond: (path: string) => string | undefined): Promise<ApiClient> => {
    server = createServer(({ url = "" }, response) => {
      const text = respond(url);
      if (text !== undefined) response.end(text);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    return new ApiClient(`http://127.0.0.1:${port}`, { timeoutMs: 300 });
  };

  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  it("counts requests without a response among the waits", async () => {
    const client = await listen((path) => (path === "/well" ? "{}" : undefined));
    await client.attempt("/well");
    expect(await client.attempt("/never?a=1")).toBeUndefined();
    expect(client.slowest).toEqual({ ms: expect.any(Number), path: "/never" });
    expect(client.slowest.ms).toBeGreaterThanOrEqual(290);
    expect([client.unanswered, [...client.statuses]]).toEqual([1, [[200, 1]]]);
  });

  it("counts a garbled response as a missing one", async () => {
    const client = await listen(() => '{"a":');
    expect(await client.attempt("/garbled")).toBeUndefined();
    expect(client.unanswered).toBe(1);
  });

  it("clears its counts on a reset", async () => {
    const client = await listen(() => undefined);
    await client.attempt("/never");
    client.reset();
    expect([client.slowest.ms, client.unanswered]).toEqual([0, 0]);
  });
});
