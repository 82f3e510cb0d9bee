import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unlessAborted } from "../../../src/programs/shared/interruption.ts";
import { clickhouseSettings } from "../../../src/programs/stack/components/clickhouse-access.ts";
import { markFolder } from "../../../src/programs/stack/data-folder.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { ApiClient, type Target } from "../client.ts";
import { Product } from "../product.ts";
import { startStores } from "../store-processes.ts";
import { FaultyProxy } from "./faulty-proxy.ts";
import { LimitedDisk } from "./limited-disk.ts";

/** Components behind a proxy. */
export const PROXIED = ["worker", "sqld", "clickhouse", "broker"] as const;
/** Components with a data folder. */
export const DISKS = [...PROXIED, "emulator"] as const;
export const COMPONENTS = [...DISKS, "bridge", "passwords"] as const;
export type Proxied = (typeof PROXIED)[number];
export type Disk = (typeof DISKS)[number];
export type Component = (typeof COMPONENTS)[number];

const STORES: readonly Component[] = ["sqld", "clickhouse", "broker"];
const TIMEOUT_MS = 5_000;

/** The product with its stores beside it, a proxy in front of each component, and if necessary a limited disk under each. */
export class FaultEnvironment {
  readonly proxies: Readonly<Record<Proxied, FaultyProxy>>;
  readonly disks = new Map<Disk, LimitedDisk>();
  readonly #folder = mkdtempSync(join(tmpdir(), "controller-faults-"));
  readonly #supervisor = new Supervisor();
  #product: Product | undefined;
  #urls: Record<string, string> = {};

  private constructor(proxies: FaultyProxy[]) {
    this.proxies = Object.fromEntries(PROXIED.map((name, i) => [name, proxies[i]])) as Record<Proxied, FaultyProxy>;
  }

  static async start(options: { hasLimitedDisks: boolean; signal: AbortSignal }): Promise<FaultEnvironment> {
    const environment = new FaultEnvironment(await Promise.all(PROXIED.map(() => FaultyProxy.listen())));
    try {
      await environment.#start(options);
      return environment;
    } catch (error) {
      await environment.end();
      throw error;
    }
  }

  async #start({ hasLimitedDisks, signal }: { hasLimitedDisks: boolean; signal: AbortSignal }): Promise<void> {
    const [storesDir, dataDir] = [join(this.#folder, "stores"), join(this.#folder, "data")];
    mkdirSync(dataDir);
    markFolder(dataDir);
    for (const disk of hasLimitedDisks ? DISKS : [])
      this.disks.set(disk, LimitedDisk.mount(join(STORES.includes(disk) ? storesDir : dataDir, disk)));
    const port = await anyFreePort();
    const serviceUrl = `http://127.0.0.1:${port}`;
    const supervisor = this.#supervisor;
    const starting = startStores({ dataDir: storesDir, supervisor, serviceUrl, hasSqldLogin: true });
    const { urls, sqldQuery, clickhouseLogin } = await unlessAborted(starting, signal);
    this.#urls = urls;
    const { worker, sqld, clickhouse, broker } = this.proxies;
    worker.forwardTo(serviceUrl);
    sqld.forwardTo(urls.libsql);
    clickhouse.forwardTo(urls.clickhouse);
    broker.forwardTo(urls.mqtt);
    const env = {
      PORT: String(port),
      LIBSQL_URL: `${sqld.urlFor("http")}${sqldQuery}`,
      // The product uses one login for everything if it did not start the store.
      ...clickhouseSettings(clickhouse.urlFor("http"), clickhouseLogin),
      MQTT_URL: broker.urlFor("ws"),
      LOG_REQUESTS: "failures",
    };
    this.#product = await Product.run("start", dataDir, env, { signal });
  }

  get product(): Product {
    if (this.#product === undefined) throw new Error("The product does not run");
    return this.#product;
  }

  /** Returns a new client of the service through its proxy, and the stores without their proxies. */
  target(): Target {
    const client = new ApiClient(this.proxies.worker.urlFor("http"), { timeoutMs: TIMEOUT_MS });
    return { client, dataDir: this.product.dataDir, urls: this.#urls };
  }

  pidOf(component: Component): number {
    const pid = STORES.includes(component) ? this.#supervisor.pids[component] : this.product.pidOf(component);
    if (pid === undefined) throw new Error(`${component} does not run`);
    return pid;
  }

  async end(): Promise<void> {
    try {
      await this.#product?.interrupt();
    } finally {
      await this.#supervisor.stop();
      for (const proxy of Object.values(this.proxies)) await proxy.close();
      for (const disk of this.disks.values()) disk.unmount();
      rmSync(this.#folder, { recursive: true, force: true });
    }
  }
}
