import { randomSecret } from "../../src/auth/secrets.ts";
import { parseCommand, print, runCommand, UserError } from "../../src/programs/shared/cli.ts";
import { interruption, unlessAborted } from "../../src/programs/shared/interruption.ts";
import { type NativeAddress, OWNER, WORKER } from "../../src/programs/stack/components/clickhouse-access.ts";
import { clickhouseComponent } from "../../src/programs/stack/components/clickhouse-process.ts";
import { Supervisor } from "../../src/programs/stack/supervisor.ts";

const COMMAND = {
  name: "npm run clickhouse-shard",
  arguments: "<folder> <host> <HTTP port> <number> <native address>...",
  summary: `Runs a shard of a ClickHouse cluster, with the ClickHouse from npm, for networks that one machine cannot hold. Start one on each
    machine, with the same list of native addresses (host:port, one for each shard), the number of the shard (from 1), and the same settings.

    The folder holds the data. The host is the address to listen on. The native ports are for the shards only: they exchange queries and
    results without encryption, so use a private network.`,
  sections: {
    Settings: {
      CLICKHOUSE_PASSWORD: `Password of the user "${OWNER}", as for the service. At least 16 characters`,
      CLUSTER_SECRET: "With it, the shards accept each other's queries. At least 16 characters",
      CLICKHOUSE_CLUSTER: "Name of the cluster, as for the service. Default: network",
      CLICKHOUSE_DATABASE: "Database of the service. Default: controller",
      CLICKHOUSE_BIN: "A ClickHouse executable, to run instead of the library from npm",
    },
  },
} as const;

const MIN_SECRET_LENGTH = 16;

await runCommand(async () => {
  const command = parseCommand(COMMAND);
  if (command === undefined) return;
  const [dataDir, host, port, number, ...addresses] = command.positionals;
  const nodes = addresses.map(toAddress);
  const node = Number(number) - 1;
  if (!dataDir || !host || !isPort(Number(port)) || nodes[node] === undefined)
    throw new UserError(`Expected the arguments ${COMMAND.arguments}. See ${COMMAND.name} -- --help.`);
  const { CLICKHOUSE_CLUSTER: name = "network", CLICKHOUSE_DATABASE: database = "controller" } = process.env;
  if (![name, database].every((text) => /^[A-Za-z_]\w*$/.test(text)))
    throw new UserError("CLICKHOUSE_CLUSTER and CLICKHOUSE_DATABASE must consist of letters, digits and underscores.");
  const access = {
    owner: { user: OWNER, password: secretOf("CLICKHOUSE_PASSWORD") },
    // For the check whether the server is ready.
    worker: { user: WORKER, password: randomSecret() },
  };
  const cluster = { name, nodes, node, secret: secretOf("CLUSTER_SECRET") };
  const options = { dataDir, host, port: Number(port), access, databases: [database, `${database}_check`], cluster };
  const supervisor = new Supervisor();
  const signal = interruption("Stopping.");
  try {
    await unlessAborted(
      supervisor.start(clickhouseComponent({ ...options, executable: process.env.CLICKHOUSE_BIN })),
      signal,
    );
    print(`Shard ${node + 1} of ${nodes.length} is ready at http://${host}:${port}. Ctrl-C stops it.`);
    await unlessAborted(supervisor.fatal, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await supervisor.stop();
  }
  print("Stopped.");
});

function toAddress(text: string): NativeAddress {
  const [, host, port] = /^([\w.-]+):(\d+)$/.exec(text) ?? [];
  if (host === undefined || !isPort(Number(port)))
    throw new UserError(`"${text}" is not an address such as db1.example.com:9000.`);
  return { host, port: Number(port) };
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port > 0 && port < 65_536;
}

function secretOf(setting: "CLICKHOUSE_PASSWORD" | "CLUSTER_SECRET"): string {
  const secret = process.env[setting] ?? "";
  if (secret.length < MIN_SECRET_LENGTH)
    throw new UserError(`The setting ${setting} must have at least ${MIN_SECRET_LENGTH} characters.`);
  return secret;
}
