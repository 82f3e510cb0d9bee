import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DEFAULT_ISSUER } from "../../../src/env.ts";
import { unlessAborted } from "../../../src/programs/shared/interruption.ts";
import { brokerComponent } from "../../../src/programs/stack/components/broker-process.ts";
import {
  clickhouseSettings,
  newClickHouseAccess,
  withLogin,
} from "../../../src/programs/stack/components/clickhouse-access.ts";
import { clickhouseComponent } from "../../../src/programs/stack/components/clickhouse-process.ts";
import { newSqldAccess, sqldComponent } from "../../../src/programs/stack/components/sqld.ts";
import { markFolder } from "../../../src/programs/stack/data-folder.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { Product } from "../product.ts";
import { Target } from "../target.ts";
import { BadLine } from "./bad-line.ts";
import { SmallDisk } from "./small-disk.ts";

/** The product with everything around it that the faults need: stores beside it, a bad line to each part, a small disk under each. */

export type Line = "worker" | "sqld" | "clickhouse" | "broker";
export type Disk = Line | "emulator";
export type Part = Disk | "bridge" | "passwords";

const STORES: readonly Part[] = ["sqld", "clickhouse", "broker"];
/** A client that is not answered for so long asks again. */
const TIMEOUT_MS = 5_000;

export interface WorldOptions {
  hasSmallDisks: boolean;
  /** Cuts the start off. */
  signal: AbortSignal;
}

export class World {
  readonly product: Product;
  readonly lines: Readonly<Record<Line, BadLine>>;
  readonly disks: ReadonlyMap<Disk, SmallDisk>;
  readonly #supervisor: Supervisor;
  readonly #folder: string;
  readonly #urls: Record<string, string>;

  private constructor(world: Pick<World, "product" | "lines" | "disks">, beside: Beside) {
    this.product = world.product;
    this.lines = world.lines;
    this.disks = world.disks;
    this.#supervisor = beside.supervisor;
    this.#folder = beside.folder;
    this.#urls = beside.urls;
  }

  static async start({ hasSmallDisks, signal }: WorldOptions): Promise<World> {
    const folder = mkdtempSync(join(tmpdir(), "controller-faults-"));
    const storesDir = join(folder, "stores");
    const dataDir = join(folder, "data");
    const supervisor = new Supervisor();
    const disks = new Map<Disk, SmallDisk>();
    const [worker, sqld, clickhouse, broker] = await Promise.all([1, 2, 3, 4].map(() => BadLine.listen()));
    const lines = { worker, sqld, clickhouse, broker } as Record<Line, BadLine>;
    const free = () => anyFreePort();
    const [port, sqldPort, clickhousePort, tcpPort, wsPort] = await Promise.all([
      free(),
      free(),
      free(),
      free(),
      free(),
    ]);
    const serviceUrl = `http://127.0.0.1:${port}`;
    const access = newClickHouseAccess();
    const sqldAccess = await newSqldAccess();
    const authToken = `?authToken=${sqldAccess.token}`;
    const urls = {
      libsql: `http://127.0.0.1:${sqldPort}${authToken}`,
      clickhouse: withLogin(`http://127.0.0.1:${clickhousePort}`, access.owner),
      mqtt: `ws://127.0.0.1:${wsPort}`,
    };
    try {
      mkdirSync(dataDir);
      markFolder(dataDir);
      for (const disk of hasSmallDisks ? (["worker", "sqld", "clickhouse", "broker", "emulator"] as const) : [])
        disks.set(disk, SmallDisk.mount(join(STORES.includes(disk) ? storesDir : dataDir, disk)));
      lines.worker.leadTo(serviceUrl);
      lines.sqld.leadTo(urls.libsql);
      lines.clickhouse.leadTo(urls.clickhouse);
      lines.broker.leadTo(urls.mqtt);
      const jwksUrl = `${serviceUrl}/.well-known/jwks.json`;
      const host = "127.0.0.1";
      const starting = Promise.all([
        supervisor.start(sqldComponent(storesDir, sqldPort, sqldAccess.publicKey)),
        supervisor.start(
          clickhouseComponent({
            ...{ dataDir: storesDir, port: clickhousePort, access, databases: ["controller"] },
            executable: process.env.CLICKHOUSE_BIN,
          }),
        ),
        supervisor.start(
          brokerComponent({ dataDir: storesDir, host, tcpPort, wsPort, jwksUrl, issuer: DEFAULT_ISSUER }),
        ),
      ]);
      await unlessAborted(starting, signal);
      const env = {
        PORT: String(port),
        LIBSQL_URL: `${lines.sqld.urlFor("http")}${authToken}`,
        // One login for all that the product does to a store that it did not start.
        ...clickhouseSettings(lines.clickhouse.urlFor("http"), access.owner),
        MQTT_URL: lines.broker.urlFor("ws"),
        LOG_REQUESTS: "failures",
      };
      const product = await Product.run("start", dataDir, env, { signal });
      return new World({ product, lines, disks }, { supervisor, folder, urls });
    } catch (error) {
      await tearDown({ supervisor, folder, lines, disks });
      throw error;
    }
  }

  /** For one load or several, which reach the service over its line, and the stores past theirs. */
  target(): Target {
    const { product, lines } = this;
    const urls = this.#urls;
    return new Target({ url: lines.worker.urlFor("http"), dataDir: product.dataDir, urls }, TIMEOUT_MS);
  }

  pidOf(part: Part): number {
    const pid = STORES.includes(part) ? this.#supervisor.pids[part] : this.product.pidOf(part);
    if (pid === undefined) throw new Error(`The ${part} does not run`);
    return pid;
  }

  async end(): Promise<void> {
    try {
      await this.product.interrupt();
    } finally {
      await tearDown({ supervisor: this.#supervisor, folder: this.#folder, lines: this.lines, disks: this.disks });
    }
  }
}

interface Beside {
  supervisor: Supervisor;
  folder: string;
  urls: Record<string, string>;
}

async function tearDown(world: Omit<Beside, "urls"> & Pick<World, "lines" | "disks">): Promise<void> {
  await world.supervisor.stop();
  for (const line of Object.values(world.lines)) await line.close();
  for (const disk of world.disks.values()) disk.unmount();
  rmSync(world.folder, { recursive: true, force: true });
}
