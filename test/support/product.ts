import { appendFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";
import type { TestProject } from "vitest/node";
import { Product, until } from "../../scripts/harness/product.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import { databaseImage, dataFolderWith } from "./database-image.ts";
import { SECRET_MARK, SECRETS } from "./secret-mark.ts";

/** One running product, shared by all tests that stop none of its components. */

export const ADMIN = { username: "root@example.com", password: `${SECRET_MARK} administrator's password` };
export const ENROLMENT_TOKEN = `${SECRET_MARK}-enrolment-token`;

const STARTED = "test-started";
const FAILED = "test-failed";
const OUTPUT = "test-output";

const MAX_OUTAGES = 20;
/** Whether a line tells why a request got 503. No test stops a component of this product, so this may be why one fails. */
const isOutage = (line: string): boolean =>
  / ended unexpectedly|dependency unavailable|samples not committed/.test(line);

/** Starts the product in the background, so that tests without it can run. `sharedProduct` waits for it. */
export default async function startProduct(project: TestProject): Promise<() => Promise<void>> {
  const image = await databaseImage(project);
  const dataDir = dataFolderWith(image.folder);
  const [port, mqttPort, mqttWsPort] = await Promise.all([anyFreePort(), anyFreePort(), anyFreePort()]);
  project.provide("product", { url: `http://127.0.0.1:${port}`, mqttPort, mqttWsPort, dataDir });
  const write = (file: string, text: string) => writeFileSync(join(dataDir, file), text);
  const starting = Product.run(
    "start",
    dataDir,
    {
      PORT: String(port),
      MQTT_PORT: String(mqttPort),
      MQTT_WS_PORT: String(mqttWsPort),
      ADMIN_USERNAME: ADMIN.username,
      ADMIN_PASSWORD: ADMIN.password,
      ENROLMENT_TOKEN,
      SIGNUP: "open",
      NEW_USERS: "operator",
      // The receivers of the tests are on this machine.
      WEBHOOK_NETWORKS: "private",
    },
    { onOutput: (text) => appendFileSync(join(dataDir, OUTPUT), text) },
  );
  starting.then(
    () => write(STARTED, ""),
    (error: unknown) => write(FAILED, String(error)),
  );
  return async () => {
    const product = await starting.catch(() => undefined);
    await product?.interrupt();
    if (product !== undefined && SECRETS.test(product.output)) {
      process.exitCode = 1;
      console.log("The product printed a secret.");
    }
    for (const line of (product?.output ?? "").split("\n").filter(isOutage).slice(0, MAX_OUTAGES)) console.log(line);
    rmSync(dataDir, { recursive: true, force: true });
    image.remove();
  };
}

/** Waits until the product is ready, and returns its addresses and output. */
export async function sharedProduct() {
  const product = inject("product");
  const read = (file: string): string | undefined => {
    try {
      return readFileSync(join(product.dataDir, file), "utf8");
    } catch {
      return undefined;
    }
  };
  await until(() => {
    const failure = read(FAILED);
    if (failure !== undefined) throw new Error(failure);
    return read(STARTED) !== undefined;
  }, 110_000);
  const { urls } = JSON.parse(read("stack.json") ?? "") as { urls: Record<string, string> };
  return { ...product, urls, output: () => read(OUTPUT) ?? "" };
}
