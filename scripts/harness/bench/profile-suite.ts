import { writeFileSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { WebSocket } from "ws";
import { print } from "../../../src/programs/shared/cli.ts";
import { buildWorker } from "../../../src/programs/stack/components/builds.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import { makeAgents, makeUser, type TestAgent } from "../accounts.ts";
import { ApiClient } from "../client.ts";
import { acknowledge, callbackPath, openSocket, seqOf, streamPath } from "../job-socket.ts";
import { UPDATE_PATH } from "../telemetry-oracle.ts";
import { buildDirOf, runSecondWorkerd } from "../workerd.ts";
import { generateLoad, type LoadOptions } from "../workload.ts";
import { type BenchContext, CONNECTIONS, fields } from "./suite.ts";

/** CPU profiles of the Worker, taken by V8 under the load of one path after the other. */

const REPORTING = 500;
const WATCHED = 100;
const LIVE_S = 300;
const ACKNOWLEDGE_EVERY = 50;
const SHOWN = 12;

export async function benchProfile(context: BenchContext): Promise<void> {
  const { product, folder, seconds, report, signal } = context;
  print("Building the Worker again, with the names of its functions.");
  const buildDir = join(folder, "profiled");
  const options = ["--assets", join(product.dataDir, "dashboard")];
  await buildWorker({ outdir: buildDir, minify: false, options, signal });
  await copyFile(join(buildDirOf(product), "workerd.capnp"), join(buildDir, "workerd.capnp"));
  const port = await anyFreePort();
  const args = [`--inspector-addr=127.0.0.1:${port}`];
  const { url, end } = await runSecondWorkerd(product, { folder, buildDir, args });
  try {
    const profiler = await Profiler.connect(port);
    for (const [name, path] of Object.entries(await expensivePaths(context, url))) {
      await generateLoad({ url, seconds, ...path });
      await profiler.call("Profiler.start");
      const { count } = await generateLoad({ url, seconds, ...path });
      const { profile } = await profiler.call<{ profile: CpuProfile }>("Profiler.stop");
      writeFileSync(`bench-${name}.cpuprofile`, JSON.stringify(profile));
      print(`\n${name}: ${count} requests (bench-${name}.cpuprofile)`);
      for (const [where, us] of selfTimes(profile).slice(0, SHOWN))
        report.add(`${name}: ${where}`, us / count, "µs each");
    }
    profiler.end();
  } finally {
    await end();
  }
}

type Path = Omit<LoadOptions, "url" | "seconds">;

async function expensivePaths({ product }: BenchContext, url: string): Promise<Record<string, Path>> {
  const client = new ApiClient(url);
  const agents = await makeAgents(product.dataDir, "profile", REPORTING);
  const { token } = await makeUser(product.dataDir, "bench-profile@example.com");
  const now = Date.now();
  const metrics = Object.keys(fields("field", 0)).slice(0, 4).join();
  const chart = (apId: string): string =>
    `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=${metrics}&window=5m`;
  const samples = Array.from({ length: LIVE_S }, (_, i) => ({ ts: now - i * 1000, payload: fields("field", i) }));
  for (const { apId, token } of agents.slice(0, WATCHED)) {
    await client.request(UPDATE_PATH, { token, body: { samples } });
    // The first query loads the live window, which is not to be profiled.
    await client.request(chart(apId), { token });
  }
  const jobNumber = crypto.randomUUID();
  const onText = (text: string, socket: WebSocket) => {
    const seq = seqOf(text);
    if (seq % ACKNOWLEDGE_EVERY === 0) acknowledge(socket, seq);
  };
  await openSocket({ url, path: streamPath(jobNumber), token, onText });
  return {
    "live-query": {
      connections: CONNECTIONS,
      next: (connection, i) => {
        const { apId, token } = agents[(connection + i * CONNECTIONS) % WATCHED] as TestAgent;
        return { method: "GET", token, path: chart(apId) };
      },
    },
    ingest: {
      connections: REPORTING,
      next: (connection, i) => {
        const body = JSON.stringify({ ts: Date.now(), payload: fields("field", i) });
        return { method: "POST", path: UPDATE_PATH, token: agents[connection]?.token, body };
      },
    },
    callback: {
      connections: CONNECTIONS,
      next: () => ({ method: "POST", path: callbackPath(jobNumber), token, body: '[{"text":"something to say"}]' }),
    },
  };
}

interface CpuProfile {
  nodes: { id: number; callFrame: { functionName: string; lineNumber: number } }[];
  samples: number[];
  timeDeltas: number[];
}

/** Returns microseconds by function, the most expensive first. V8's own work, such as garbage collection, is in parentheses. */
function selfTimes({ nodes, samples, timeDeltas }: CpuProfile): [string, number][] {
  const names = new Map(
    nodes.map(({ id, callFrame }) => [id, callFrame.functionName || `line ${callFrame.lineNumber}`]),
  );
  const times = new Map<string, number>();
  for (const [i, id] of samples.entries()) {
    const where = names.get(id) ?? "?";
    if (where !== "(idle)") times.set(where, (times.get(where) ?? 0) + (timeDeltas[i] ?? 0));
  }
  return [...times].sort(([, a], [, b]) => b - a);
}

/** A client of workerd's inspector. */
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
    await profiler.call("Profiler.enable");
    return profiler;
  }

  end(): void {
    this.#socket.terminate();
  }

  call<T>(method: string): Promise<T> {
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      const receive = (data: Buffer): void => {
        const message = JSON.parse(String(data)) as { id?: number; result: T };
        if (message.id !== id) return;
        this.#socket.off("message", receive);
        resolve(message.result);
      };
      this.#socket.on("message", receive);
      this.#socket.send(JSON.stringify({ id, method }));
    });
  }
}
