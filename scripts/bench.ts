import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Report } from "./bench/report.ts";
import { benchTelemetry } from "./bench/telemetry.ts";
import { Refused, red, say } from "./stack/console.ts";
import { Supervisor } from "./stack/supervisor.ts";
import { runBareWorker } from "./trial/bare.ts";
import { Product } from "./trial/product.ts";

const SUITES = { telemetry: benchTelemetry };

const HELP = `npm run bench -- <suite>

Measures the production form of the product, next to a bare Hono route on the same workerd in the same run: a figure by itself says
more about the machine than about the product, a ratio does not. Everything runs on this machine, on free ports and in a temporary
folder, and goes when it is done.

Suites: ${Object.keys(SUITES).join(", ")}

  --seconds <n>   how long each figure is measured (5)
  --quick         less data: tells whether it works, not how well
  --json <file>   the figures as JSON besides (bench-<suite>.json)`;

export interface BenchContext {
  product: Product;
  /** A bare Hono route on the same workerd. */
  bareUrl: string;
  supervisor: Supervisor;
  folder: string;
  seconds: number;
  isQuick: boolean;
  report: Report;
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: "boolean", short: "h", default: false },
      quick: { type: "boolean", default: false },
      seconds: { type: "string", default: "5" },
      json: { type: "string" },
    },
  });
  if (values.help) return say(HELP);
  const [name = ""] = positionals;
  const seconds = Number(values.seconds);
  if (!Object.hasOwn(SUITES, name)) throw new Refused(`There is no suite "${name}". Try --help.`);
  if (!(seconds >= 0.2 && seconds <= 600)) throw new Refused("--seconds must be a number from 0.2 to 600.");

  const folder = mkdtempSync(join(tmpdir(), "controller-bench-"));
  const supervisor = new Supervisor();
  let product: Product | undefined;
  const stop = async (): Promise<void> => {
    await Promise.all([supervisor.stop(), product?.interrupt()]);
    rmSync(folder, { recursive: true, force: true });
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void stop().then(() => process.exit(130)));
  try {
    say("Starting the product and, beside it, the bare Worker.");
    product = await Product.run("start", join(folder, "data"));
    const bareUrl = await runBareWorker(supervisor, folder);
    const report = new Report(name);
    await SUITES[name as keyof typeof SUITES]({
      product,
      bareUrl,
      supervisor,
      folder,
      seconds,
      isQuick: values.quick,
      report,
    });
    report.print();
    const file = values.json ?? `bench-${name}.json`;
    writeFileSync(file, report.toJson());
    say(`\nWritten to ${file}.`);
  } finally {
    await stop();
  }
}

try {
  await main();
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  say(red(error.message));
  process.exitCode = 1;
}
