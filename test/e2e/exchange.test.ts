import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Api } from "../../scripts/trial/api.ts";
import { type HeldSocket, holdSocket } from "../../scripts/trial/held-socket.ts";
import { Product } from "../../scripts/trial/product.ts";
import { makeAgents } from "../../scripts/upgrade/accounts.ts";
import { SECRET_MARK } from "../support/secret-mark.ts";

const ADMIN = { username: "admin@example.com", password: `${SECRET_MARK} of an administrator` };
const SETTINGS = { ADMIN_USERNAME: ADMIN.username, ADMIN_PASSWORD: ADMIN.password };
const LANES = 4;
const PAUSE_MS = 20;

const folder = mkdtempSync(join(tmpdir(), "controller-exchange-"));
let socket: HeldSocket;
let product: Product | undefined;

beforeAll(async () => {
  socket = await holdSocket();
});

afterAll(async () => {
  if (product?.isRunning) await product.interrupt();
  await socket.close();
  rmSync(folder, { recursive: true, force: true });
});

it("answers everyone, whoever came while it was exchanged included, when it is started with a socket", async () => {
  product = await Product.run("start", folder, SETTINGS, { socket });
  const { url } = product;
  const api = new Api(url);
  const token = await api.logIn(ADMIN.username, ADMIN.password);
  const [agent] = await makeAgents(api, token, 1);
  const answers: (number | string)[] = [];
  let isOver = false;
  // For something that takes both stores, each time on a connection of its own.
  const ask = async (): Promise<void> => {
    for (; !isOver; await sleep(PAUSE_MS)) {
      const asked = fetch(`${url}/api/v1/metrics/agent_multi_metric_data?agent=${agent?.apId}&metrics=n`, {
        headers: { Authorization: `Bearer ${token}`, Connection: "close" },
      });
      answers.push(
        await asked.then(
          ({ status }) => status,
          (error: Error) => String(error.cause ?? error),
        ),
      );
    }
  };
  const lanes = Array.from({ length: LANES }, ask);

  await product.interrupt();
  const before = answers.length;
  const waiting = fetch(`${url}/healthz`);
  await sleep(500);
  expect(answers.length).toBeLessThanOrEqual(before + LANES);
  product = await Product.run("start", folder, SETTINGS, { socket });

  expect((await waiting).status).toBe(200);
  isOver = true;
  await Promise.all(lanes);
  expect(answers.length).toBeGreaterThan(before);
  expect([...new Set(answers)]).toEqual([200]);
}, 300_000);

it("refuses a port other than the socket's", async () => {
  const another = Product.run("start", join(folder, "another"), { PORT: "1" }, { socket });
  await expect(another).rejects.toThrow(`PORT is 1, but controller.socket listens on ${socket.port}.`);
});
