import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { Target } from "../../../scripts/harness/target.ts";

/** How the faults are judged: somebody who waits in vain waits too. */
describe("a target", () => {
  let server: Server;

  const listen = async (answer: (path: string) => string | undefined): Promise<Target> => {
    server = createServer(({ url = "" }, response) => {
      const text = answer(url);
      if (text !== undefined) response.end(text);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    return new Target({ url: `http://127.0.0.1:${port}`, dataDir: "", urls: {} }, 300);
  };

  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  it("counts what is never answered among the waits", async () => {
    const target = await listen((path) => (path === "/well" ? "{}" : undefined));
    await target.ask("/well");
    expect(await target.ask("/never?a=1")).toBeUndefined();
    expect(target.slowest).toEqual({ ms: expect.any(Number), path: "/never" });
    expect(target.slowest.ms).toBeGreaterThanOrEqual(290);
    expect([target.unanswered, [...target.statuses]]).toEqual([1, [[200, 1]]]);
  });

  it("begins anew when told to", async () => {
    const target = await listen(() => undefined);
    await target.ask("/never");
    target.forget();
    expect([target.slowest.ms, target.unanswered]).toEqual([0, 0]);
  });
});
