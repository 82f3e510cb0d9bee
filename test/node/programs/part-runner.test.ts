import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../../scripts/harness/product.ts";
import { BrokerLink } from "../../../src/programs/emulator/broker-link.ts";
import { EmulatorClient } from "../../../src/programs/emulator/emulator-client.ts";
import { JobFiles } from "../../../src/programs/emulator/job-files.ts";
import { reportNumber, runPart, sitesOf } from "../../../src/programs/emulator/part-runner.ts";

describe("a part of an emulator job", () => {
  const agent = { ap_id: "a", password: "no secret", latitude: 51, longitude: -2 };
  const spec = { access_point_type: "WiFi" as const, num_devices: 1, duration: 1, agents: [agent] };
  const part = { job_number: "00000001", part: 1, parts: 1, emulators: [spec] };
  let folder: string;
  let files: JobFiles;
  let server: Server;
  let stop: AbortController;
  let reported: { state: string; key: unknown }[];
  let respond: (report: { state: string }, response: ServerResponse) => void;

  /** Runs the part with a controller that accepts logins and calls `respond` for reports, and without a broker. */
  const run = () => {
    const { port } = server.address() as { port: number };
    const controller = new EmulatorClient({
      url: `http://127.0.0.1:${port}`,
      appName: "emulator",
      apiKey: "no secret",
    });
    const link = new BrokerLink({ url: "mqtt://127.0.0.1:1", clientId: "e", controller, signal: stop.signal });
    return runPart({ part, emulatorId: "e", controller, link, files, signal: stop.signal });
  };

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "part-runner-"));
    files = new JobFiles(folder);
    stop = new AbortController();
    reported = [];
    respond = (_report, response) => response.end();
    server = createServer(async (request, response) => {
      const body = await text(request);
      if (!request.url?.startsWith("/api/v1/callback/emulator")) return void response.end();
      const [report] = JSON.parse(body) as [{ state: string }];
      reported.push({ state: report.state, key: request.headers["idempotency-key"] });
      respond(report, response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterEach(() => {
    stop.abort();
    server.close();
    server.closeAllConnections();
    rmSync(folder, { recursive: true, force: true });
  });

  it("is claimed, run to its end and deleted", async () => {
    await run();
    expect(reported).toEqual([
      { state: "running", key: "e 1 claim" },
      { state: "done", key: "e 1 end" },
    ]);
    expect(files.parts()).toEqual([]);
  });

  it("is saved before its claim, so that a kill before the response does not lose it", async () => {
    // The controller never responds. For the files this is the same as a kill.
    respond = () => {};
    void run();
    await until(() => reported.length > 0);
    expect(new JobFiles(folder).parts()).toEqual([part]);
    expect(files.progress(part)).toBeUndefined();
  });

  it("is deleted if another emulator has claimed it", async () => {
    respond = (_report, response) => response.writeHead(409).end();
    await run();
    expect(files.parts()).toEqual([]);
  });

  it("is reported as done, and not claimed again, if it ended while no emulator ran it", async () => {
    files.save(part, { startedMs: Date.now() - 60_000, samples: 7, sites: [] });
    respond = ({ state }, response) => response.writeHead(state === "running" ? 409 : 200).end();
    await run();
    expect(reported).toEqual([{ state: "done", key: "e 1 end" }]);
    expect(files.parts()).toEqual([]);
  });
});

describe("a request of the emulator", () => {
  it.each([
    ["the connection breaks", (response: ServerResponse) => response.destroy()],
    ["a proxy responds with 502", (response: ServerResponse) => response.writeHead(502).end()],
  ])("is retried at once, twice, if %s", async (_what, fail) => {
    const attempts: string[] = [];
    const server = createServer(async (request, response) => {
      await text(request);
      const { pathname } = new URL(request.url ?? "", "http://localhost");
      attempts.push(`${pathname} ${request.headers["idempotency-key"] ?? ""}`);
      if (attempts.length % 3 !== 0) return void fail(response);
      response.writeHead(200, { "X-Request-Id": "r" }).end('{"access_token":"token","expires_in":60}');
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const { port } = server.address() as { port: number };
      const controller = new EmulatorClient({ url: `http://127.0.0.1:${port}`, appName: "e", apiKey: "no secret" });
      expect(await controller.logIn()).toEqual({ token: "token", lifetimeMs: 60_000 });
      expect(await controller.logInAgent("a", "no secret")).toBe(true);
      expect(await controller.report("00000001", [{}], "key")).toBe("accepted");
      expect(attempts).toEqual([
        ...Array(6).fill("/api/v1/token/ "),
        ...Array(3).fill("/api/v1/callback/emulator key"),
      ]);
    } finally {
      server.close();
    }
  });

  it("is not retried at once if the controller itself fails", async () => {
    let attempts = 0;
    const server = createServer((_request, response) => {
      attempts++;
      response.writeHead(500, { "X-Request-Id": "r" }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const controller = new EmulatorClient({ url: `http://127.0.0.1:${port}`, appName: "e", apiKey: "no secret" });
    expect(await controller.report("00000001", [{}], "key")).toBe("retry");
    expect(attempts).toBe(1);
    server.close();
  });
});

describe("the progress messages of an unread job", () => {
  /** The number of unread messages that a job keeps, and for how long. */
  const [MESSAGES, DAY_MS] = [1_000, 24 * 3_600_000];

  it.each([1, 10])("leave room for the final message however long the job runs, in %i parts", (parts) => {
    for (const [fromDay, toDay] of [
      [0, 1],
      [1, 2],
      [364, 365],
    ] as const) {
      const first = reportNumber(fromDay * DAY_MS, parts);
      const last = reportNumber(toDay * DAY_MS, parts);
      expect((last - first) * parts).toBeLessThan(0.6 * MESSAGES);
      // Without a message for a day, the job would expire.
      expect(last - first).toBeGreaterThan(1);
    }
  });

  it("are sent every five seconds at first", () => {
    expect([5, 10, 15, 20].map((seconds) => reportNumber(seconds * 1000, 1))).toEqual([0, 1, 2, 3]);
  });
});

describe("the sites of a part", () => {
  const at = (ap_id: string, longitude: number, site?: string) => ({
    ...{ ap_id, password: "no secret", latitude: 51, longitude, ...(site !== undefined && { site }) },
  });
  const sites = (agents: ReturnType<typeof at>[]) => {
    const spec = { access_point_type: "WiFi" as const, num_devices: 1, duration: 1, agents };
    const part = { job_number: "00000001", part: 1, parts: 1, emulators: [spec] };
    return sitesOf(part).map(({ accessPoints }) => accessPoints.map(({ apId }) => apId));
  };

  it("group the access points that the controller planned for one location, although each has its own coordinates", () => {
    const agents = [at("a", -2.1, "51,-2"), at("b", 7, "51,7"), at("c", -2.2, "51,-2")];
    expect(sites(agents)).toEqual([["a", "c"], ["b"]]);
  });

  it("follow from the coordinates in messages of older controllers, which name no site", () => {
    expect(sites([at("a", -2), at("b", 7), at("c", -2)])).toEqual([["a", "c"], ["b"]]);
  });
});
