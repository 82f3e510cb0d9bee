import { createAgentLists } from "../../../accounts/agents/agent-lists.ts";
import { createAuditFeed } from "../../../accounts/audit-feed.ts";
import { createGroupStore } from "../../../accounts/group-store.ts";
import { createSilenceReader } from "../../../alerts/active-silences.ts";
import { createEventSink } from "../../../alerts/event-sink.ts";
import { createRuleStore } from "../../../alerts/rule-store.ts";
import { createSilenceStore } from "../../../alerts/silence-store.ts";
import { createWatchFeed } from "../../../alerts/watch-feed.ts";
import type { Config } from "../../../env.ts";
import { createDatabase } from "../../../storage/libsql.ts";
import type { Journal } from "../journal.ts";
import { createPlacement, shardName } from "../placement.ts";
import { ShardAlerting, type ShardAlertingOptions } from "./shard-alerting.ts";

export interface OpenOptions extends Pick<ShardAlertingOptions, "telemetry" | "onDueChanged" | "now"> {
  config: Config;
  state: DurableObjectState;
  /** Returns the id of the object with a name. */
  idOf(name: string): DurableObjectId;
  openJournal(onRewrite: () => void): Journal;
  /** Tells the notifier that there are new events. */
  wakeNotifier(): Promise<void>;
}

/** A batch of events of a large site takes longer than a request may. */
const TIMEOUT_MS = 5_000;

export function openShardAlerting({
  config,
  state,
  idOf,
  openJournal,
  wakeNotifier,
  ...options
}: OpenOptions): ShardAlerting {
  const database = createDatabase({
    url: config.LIBSQL_URL,
    authToken: config.LIBSQL_AUTH_TOKEN,
    timeoutMs: TIMEOUT_MS,
  });
  const groups = createGroupStore(database);
  const rules = createRuleStore(database, groups);
  const readSilences = createSilenceReader(database, createSilenceStore(database), groups);
  const { count, shardOf } = createPlacement(config);
  // A shard beyond this number has no agents any more.
  const numbers = Array.from({ length: count }, (_, number) => number);
  const number = numbers.find((one) => idOf(shardName(one)).equals(state.id));
  return new ShardAlerting(
    {
      ...options,
      storage: state.storage,
      sync: () => state.storage.sync(),
      // Not awaited: a lost wake-up only delays the delivery until the next poll of the notifier.
      onUploaded: async () => state.waitUntil(wakeNotifier().catch(() => {})),
      feed: createWatchFeed(createAuditFeed(database), rules, createAgentLists(database)),
      sink: createEventSink(database, readSilences, options.now),
      name: number === undefined ? `shard-${state.id.toString().slice(0, 16)}` : shardName(number),
      owns: (apId) => shardOf(apId) === number,
    },
    openJournal,
  );
}
