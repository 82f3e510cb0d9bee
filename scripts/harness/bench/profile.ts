import { writeFileSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { WebSocket } from "ws";
import { print } from "../../../src/programs/shared/cli.ts";
import { buildWorker } from "../../../src/programs/stack/components/worker-production.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import { makeAgents, makeUser, type TestAgent } from "../accounts.ts";
import { acknowledge, callbackPath, openSocket, seqOf, streamPath } from "../job-socket.ts";
import { buildDirOf, runSecondWorkerd } from "../workerd.ts";
import { generateLoad, type LoadOptions } from "../workload.ts";
import type { BenchContext } from "./context.ts";
import { fields } from "./samples.ts";

/** Where the time goes in the Worker: V8's own profile of it, under the load of one path after the other. */

const REPORTING = 500;
const WATCHED = 100;
const LIVE_S = 300;
const ACKNOWLEDGE_EVERY = 50;
const SHOWN = 12;

export async function benchProfile(context: BenchContext): Promise<void> {
  const { product, folder, seconds, report, signal } = context;
  print("Building the Worker once more, with the names of its functions.");
  const buildDir = join(folder, "profiled");
  const options = ["--assets", join(product.dataDir, "dashboard")];
  await buildWorker({ outdir: buildDir, minify: false, options, signal });
  await copyFile(join(buildDirOf(product), "workerd.capnp"), join(buildDir, "workerd.capnp"));
  const inspectorPort = await anyFreePort();
  const twin = await runSecondWorkerd(product, {
    folder,
    buildDir,
    args: [`--inspector-addr=127.0.0.1:${inspectorPort}`],
  });
  try {
    const profiler = await Profiler.connect(inspectorPort);
    for (const { name, ...path } of await dearestPaths(context, twin.url)) {
      await generateLoad({ url: twin.url, seconds, ...path });
      await profiler.start();
      const { count } = await generateLoad({ url: twin.url, seconds, ...path });
      const profile = await profiler.stop();
      writeFileSync(`bench-${name}.cpuprofile`, JSON.stringify(profile));
      print(`\n${name}: ${count} requests (bench-${name}.cpuprofile)`);
      for (const { where, us } of selfTimes(profile).slice(0, SHOWN))
        report.add({ what: `${name}: ${where}`, value: us / count, unit: "µs each" });
    }
    profiler.end();
  } finally {
    await twin.end();
  }
}

type Path = Omit<LoadOptions, "url" | "seconds"> & { name: string };

async function dearestPaths({ product }: BenchContext, url: string): Promise<Path[]> {
  const agents = await makeAgents(product.dataDir, "profile", REPORTING);
  const { token } = await makeUser(product.dataDir, "bench-profile@example.com");
  const post = (path: string, token: string, body: unknown) =>
    fetch(`${url}${path}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  const update = "/api/v1/agent_update/update";
  const now = Date.now();
  const metrics = Object.keys(fields("field", 0)).slice(0, 4).join();
  const chart = (apId: string): string =>
    `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=${metrics}&window=5m`;
  for (const { apId, token } of agents.slice(0, WATCHED)) {
    const samples = Array.from({ length: LIVE_S }, (_, i) => ({ ts: now - i * 1000, payload: fields("field", i) }));
    await post(update, token, { samples });
    // The first look fills the memory, which is another matter.
    await fetch(`${url}${chart(apId)}`, { headers: { Authorization: `Bearer ${token}` } });
  }
  const jobNumber = crypto.randomUUID();
  await openSocket({
    url,
    path: streamPath(jobNumber),
    token,
    onText: (text, socket) => {
      const seq = seqOf(text);
      if (seq % ACKNOWLEDGE_EVERY === 0) acknowledge(socket, seq);
    },
  });
  return [
    {
      name: "live-query",
      connections: 32,
      next: (connection, i) => {
        const { apId, token } = agents[(connection + i * 32) % WATCHED] as TestAgent;
        return { method: "GET", token, path: chart(apId) };
      },
    },
    {
      name: "ingest",
      connections: REPORTING,
      next: (connection, i) => ({
        method: "POST",
        path: update,
        token: (agents[connection] as TestAgent).token,
        body: JSON.stringify({ ts: Date.now(), payload: fields("field", i) }),
      }),
    },
    {
      name: "callback",
      connections: 32,
      next: () => ({ method: "POST", path: callbackPath(jobNumber), token, body: '[{"text":"something to say"}]' }),
    },
  ];
}

interface CpuProfile {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[];
  samples: number[];
  timeDeltas: number[];
}

/** By function, the dearest first; what V8 does outside of any function, such as collecting garbage, is in brackets. */
function selfTimes({ nodes, samples, timeDeltas }: CpuProfile): { where: string; us: number }[] {
  const names = new Map(
    nodes.map(({ id, callFrame }) => [id, callFrame.functionName || `line ${callFrame.lineNumber}`]),
  );
  const times = new Map<string, number>();
  for (const [i, id] of samples.entries()) {
    const where = names.get(id) ?? "?";
    if (where === "(idle)") continue;
    times.set(where, (times.get(where) ?? 0) + (timeDeltas[i] ?? 0));
  }
  return [...times].map(([where, us]) => ({ where, us })).sort((a, b) => b.us - a.us);
}

/** workerd's inspector, as far as it is needed here. */
class Profiler {
  readonly #socket: WebSocket;
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  static async connect(port: number): Promise<Profiler> {
    const response = await fetch(`http://127.0.0.1:${port}/json`);
    const [target] = (await response.json()) as { webSocketDebuggerUrl: string }[];
    const socket = new WebSocket(target?.webSocketDebuggerUrl ?? "", { maxPayload: 0 });
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
    const profiler = new Profiler(socket);
    await profiler.#ask("Profiler.enable");
    return profiler;
  }

  async start(): Promise<void> {
    await this.#ask("Profiler.start");
  }

  async stop(): Promise<CpuProfile> {
    return ((await this.#ask("Profiler.stop")) as { profile: CpuProfile }).profile;
  }

  end(): void {
    this.#socket.terminate();
  }

  #ask(method: string): Promise<unknown> {
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      const take = (data: Buffer): void => {
        const answer = JSON.parse(String(data)) as { id?: number; result?: unknown };
        if (answer.id !== id) return;
        this.#socket.off("message", take);
        resolve(answer.result);
      };
      this.#socket.on("message", take);
      this.#socket.send(JSON.stringify({ id, method }));
    });
  }
}
