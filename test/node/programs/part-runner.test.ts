import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../../scripts/harness/product.ts";
import { BrokerLink } from "../../../src/programs/emulator/broker-link.ts";
import { EmulatorService } from "../../../src/programs/emulator/emulator-client.ts";
import { JobFiles } from "../../../src/programs/emulator/job-files.ts";
import { runPart, sitesOf } from "../../../src/programs/emulator/part-runner.ts";
import { reportNumber } from "../../../src/programs/emulator/progress-sequence.ts";

describe("a part of an emulator's job", () => {
  const agent = { ap_id: "a", password: "no secret", latitude: 51, longitude: -2 };
  const spec = { access_point_type: "WiFi" as const, num_devices: 1, duration: 1, agents: [agent] };
  const part = { job_number: "00000001", part: 1, parts: 1, emulators: [spec] };
  let folder: string;
  let files: JobFiles;
  let server: Server;
  let stop: AbortController;
  let reported: { state: string; key: unknown }[];
  let answer: (report: { state: string }, response: ServerResponse) => void;

  /** Runs it at a service that takes logins and gives `answer` to reports, and at a broker that is not there. */
  const run = () => {
    const { port } = server.address() as { port: number };
    const service = new EmulatorService({ url: `http://127.0.0.1:${port}`, appName: "emulator", apiKey: "no secret" });
    const link = new BrokerLink({ url: "mqtt://127.0.0.1:1", clientId: "e", service, signal: stop.signal });
    return runPart({ part, id: "e", service, link, files, signal: stop.signal });
  };

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "part-runner-"));
    files = new JobFiles(folder);
    stop = new AbortController();
    reported = [];
    answer = (_report, response) => response.end();
    server = createServer(async (request, response) => {
      const body = await text(request);
      if (!request.url?.startsWith("/api/v1/callback/emulator")) return void response.end();
      const [report] = JSON.parse(body) as [{ state: string }];
      reported.push({ state: report.state, key: request.headers["idempotency-key"] });
      answer(report, response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterEach(() => {
    stop.abort();
    server.close();
    server.closeAllConnections();
    rmSync(folder, { recursive: true, force: true });
  });

  it("is claimed, run to its end and forgotten", async () => {
    await run();
    expect(reported).toEqual([
      { state: "running", key: "e 1 claim" },
      { state: "done", key: "e 1 end" },
    ]);
    expect(files.parts()).toEqual([]);
  });

  it("is known after a kill between its claim and the answer to that, and then begins anew", async () => {
    // The answer never comes: as far as the files go, it is killed here.
    answer = () => {};
    void run();
    await until(() => reported.length > 0);
    expect(new JobFiles(folder).parts()).toEqual([part]);
    expect(files.progress(part)).toBeUndefined();
  });

  it("is forgotten where another one has it", async () => {
    answer = (_report, response) => response.writeHead(409).end();
    await run();
    expect(files.parts()).toEqual([]);
  });

  it("that ended while nobody ran it is not claimed again, which is refused, but said to be done", async () => {
    files.save(part, { startedMs: Date.now() - 60_000, samples: 7, sites: [] });
    answer = ({ state }, response) => response.writeHead(state === "running" ? 409 : 200).end();
    await run();
    expect(reported).toEqual([{ state: "done", key: "e 1 end" }]);
    expect(files.parts()).toEqual([]);
  });
});

describe("the emulator's requests", () => {
  it.each([
    ["the connection breaks", (response: ServerResponse) => response.destroy()],
    ["a proxy answers with 502", (response: ServerResponse) => response.writeHead(502).end()],
  ])("are repeated at once, twice, if %s", async (_what, fail) => {
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
      const service = new EmulatorService({ url: `http://127.0.0.1:${port}`, appName: "e", apiKey: "no secret" });
      expect(await service.logIn()).toEqual({ token: "token", lifetimeMs: 60_000 });
      expect(await service.logInAgent("a", "no secret")).toBe(true);
      expect(await service.report("00000001", [{}], "key")).toBe("taken");
      expect(attempts).toEqual([
        ...Array(6).fill("/api/v1/token/ "),
        ...Array(3).fill("/api/v1/callback/emulator key"),
      ]);
    } finally {
      server.close();
    }
  });

  it("are not repeated at once if the service itself fails", async () => {
    let attempts = 0;
    const server = createServer((_request, response) => {
      attempts++;
      response.writeHead(500, { "X-Request-Id": "r" }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const service = new EmulatorService({ url: `http://127.0.0.1:${port}`, appName: "e", apiKey: "no secret" });
    expect(await service.report("00000001", [{}], "key")).toBe("later");
    expect(attempts).toBe(1);
    server.close();
  });
});

describe("the reports of a job that nobody reads", () => {
  /** What a job keeps, and for how long. */
  const [MESSAGES, DAY_MS] = [1_000, 24 * 3_600_000];

  it.each([1, 10])("leave room for its end however long it runs, in %i parts", (parts) => {
    for (const [fromDay, toDay] of [
      [0, 1],
      [1, 2],
      [364, 365],
    ] as const) {
      const first = reportNumber(fromDay * DAY_MS, parts);
      const last = reportNumber(toDay * DAY_MS, parts);
      expect((last - first) * parts).toBeLessThan(0.6 * MESSAGES);
      // Without a message for a day it would be taken for over.
      expect(last - first).toBeGreaterThan(1);
    }
  });

  it("come every five seconds at first", () => {
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

  it("hold the access points that the service planned for one location, although each has its own coordinates", () => {
    const agents = [at("a", -2.1, "51,-2"), at("b", 7, "51,7"), at("c", -2.2, "51,-2")];
    expect(sites(agents)).toEqual([["a", "c"], ["b"]]);
  });

  it("are the coordinates in messages of older services, which name no site", () => {
    expect(sites([at("a", -2), at("b", 7), at("c", -2)])).toEqual([["a", "c"], ["b"]]);
  });
});
