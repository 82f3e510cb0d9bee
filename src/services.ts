import { waitUntil } from "cloudflare:workers";
import { createAgentCache } from "./accounts/agents/agent-cache.ts";
import { createAgentLists } from "./accounts/agents/agent-lists.ts";
import { createAgentStore } from "./accounts/agents/agent-store.ts";
import { type Agents, createAgents } from "./accounts/agents/agents.ts";
import { createRegistration } from "./accounts/agents/registration.ts";
import { createAppStore } from "./accounts/app-store.ts";
import { type Apps, createApps } from "./accounts/apps.ts";
import { type AuditTrail, createAuditTrail, pruneAuditTrail } from "./accounts/audit.ts";
import { createAuditFeed } from "./accounts/audit-feed.ts";
import { createEnrolment } from "./accounts/enrolment/enrolment.ts";
import { createEnrolmentTokenStore } from "./accounts/enrolment/enrolment-token-store.ts";
import { createEnrolmentTokens, type EnrolmentTokens } from "./accounts/enrolment/enrolment-tokens.ts";
import { createGroupStore } from "./accounts/group-store.ts";
import { createAuthenticate } from "./accounts/login/authenticate.ts";
import { createAuthenticateLogin } from "./accounts/login/authenticate-login.ts";
import { createLogin, type Login } from "./accounts/login/login.ts";
import { createRateLimiter } from "./accounts/login/rate-limiter.ts";
import { createRecovery, type Recovery } from "./accounts/login/recovery.ts";
import { createReplicaReads } from "./accounts/replica-reads.ts";
import { createUserStore } from "./accounts/user-store.ts";
import { createUsers, type Users } from "./accounts/users.ts";
import { type Alerts, createAlerts } from "./alerting/alerts.ts";
import { type AlertRules, createAlertRules } from "./alerting/rules.ts";
import { createSilences, type Silences } from "./alerting/silences.ts";
import { createSubscriptions, type Subscriptions } from "./alerting/subscriptions.ts";
import { createSilenceReader } from "./alerts/active-silences.ts";
import { createAlertStore } from "./alerts/alert-store.ts";
import { createEventSink } from "./alerts/event-sink.ts";
import { createRuleStore } from "./alerts/rule-store.ts";
import { createSilenceStore } from "./alerts/silence-store.ts";
import { edgePasswords } from "./auth/argon2-wasm.ts";
import { createEncryptor } from "./auth/encryptor.ts";
import type { Authenticate } from "./auth/identity.ts";
import { createRemotePasswords } from "./auth/passwords.ts";
import { createSecretHasher } from "./auth/secrets.ts";
import { createTokens, type Tokens } from "./auth/tokens.ts";
import { createOutbox, type Outbox } from "./broker/outbox.ts";
import { createCommandStore } from "./commands/command-store.ts";
import { type Commands, createCommands } from "./commands/commands.ts";
import { createComponentChecks } from "./delivery/component-checks.ts";
import { createJobRechecks } from "./delivery/job-rechecks.ts";
import { notifierOf } from "./delivery/notifier.ts";
import { createOwnedJobs } from "./delivery/owned-jobs.ts";
import { publisherOf } from "./delivery/publisher.ts";
import { createEmulationStore } from "./emulator/emulation-store.ts";
import { createEmulators, type Emulators } from "./emulator/emulators.ts";
import { createEmulatorReports, createPartStore } from "./emulator/part-store.ts";
import { createSpinupStore } from "./emulator/spinup-store.ts";
import type { Config } from "./env.ts";
import { createEventLog } from "./events/event-log.ts";
import { createEventReader, type EventReader } from "./events/event-reader.ts";
import { createNewestEvent } from "./events/newest-event.ts";
import { createSubscriptionStore } from "./events/subscription-store.ts";
import { createGroups, type Groups } from "./fleet/groups.ts";
import { createLabelStore } from "./fleet/label-store.ts";
import { createLabelledAgents } from "./fleet/labelled-agents.ts";
import { createLabelling, type Labelling } from "./fleet/labelling.ts";
import { createOverview, type NetworkOverview } from "./fleet/overview.ts";
import { createSelectors, type Selectors } from "./fleet/selectors.ts";
import { createVisibleGroups } from "./fleet/visible-groups.ts";
import { createGazetteer } from "./geo/gazetteer-store.ts";
import type { AuthenticateLogin } from "./http/operation.ts";
import { clientAddressBy } from "./http/request/client-address.ts";
import type { CountRequest } from "./http/request-log.ts";
import { createCollectors, createCountRequest, withIngestMetrics, withLoginMetrics } from "./instrumentation.ts";
import { type Callbacks, createCallbacks } from "./jobs/callbacks.ts";
import { createJobCache } from "./jobs/job-cache.ts";
import { createJobStore } from "./jobs/job-store.ts";
import { createJobs, type Jobs } from "./jobs/jobs.ts";
import { quotasOf } from "./jobs/quotas.ts";
import { createStreamClient } from "./jobs/stream/stream-client.ts";
import { createMailer } from "./mail/mailer.ts";
import { createHealth, type Health } from "./monitoring/health.ts";
import { ledgerOf } from "./monitoring/ledger.ts";
import { MetricRecorder } from "./monitoring/recorder.ts";
import { createScrape, type Scrape } from "./monitoring/scrape.ts";
import type { RareServices } from "./rare-services.ts";
import type { DashboardSettings } from "./schemas/service.ts";
import { createServicesOnDemand } from "./services-on-demand.ts";
import { createClickHouse } from "./storage/clickhouse.ts";
import { createDatabase } from "./storage/libsql.ts";
import { createIngest, type Ingest } from "./telemetry/ingest.ts";
import { createIntake, type Intake } from "./telemetry/intake.ts";
import { createMetrics, type Metrics } from "./telemetry/metrics.ts";
import { createReadings } from "./telemetry/readings.ts";
import { createPlacement } from "./telemetry/shard/placement.ts";
import { createShardClient } from "./telemetry/shard/shard-client.ts";
import { createTelemetryStore } from "./telemetry/store/telemetry-store.ts";

const DAY_MS = 86_400_000;
/** One request can change the labels of 20,000 agents, in one transaction. */
const BULK_TIMEOUT_MS = 10_000;

/** All services that the routes need. */
export interface Services extends RareServices {
  agents: Agents;
  alertRules: AlertRules;
  alerts: Alerts;
  apps: Apps;
  /** Serves the files of the dashboard. */
  assets: Pick<Fetcher, "fetch">;
  auditTrail: AuditTrail;
  authenticate: Authenticate;
  authenticateLogin: AuthenticateLogin;
  callbacks: Callbacks;
  commands: Commands;
  /** Returns the client address of a request, or `UNKNOWN_ADDRESS`. */
  clientAddress: (request: Request) => string;
  corsOrigins: string[];
  countRequest: CountRequest;
  emulators: Emulators;
  events: EventReader;
  groups: Groups;
  enrolmentTokens: EnrolmentTokens;
  health: Health;
  intake: Intake;
  outbox: Pick<Outbox, "state">;
  jobs: Jobs;
  labelling: Labelling;
  login: Login;
  /** Which requests to log. */
  loggedRequests: Config["LOG_REQUESTS"];
  /** Settings that the dashboard needs before sign-in. */
  dashboard: DashboardSettings;
  metrics: Metrics;
  overview: NetworkOverview;
  recovery: Recovery;
  reports: Ingest;
  /** Returns the service metrics. */
  scrape: Scrape;
  selectors: Selectors;
  silences: Silences;
  subscriptions: Subscriptions;
  tokens: Tokens;
  users: Users;
}

/** The bindings of the platform, in addition to the settings. */
export type Bindings = Pick<Env, "AGENT_SHARD" | "JOB_STREAM" | "PUBLISHER" | "LEDGER" | "NOTIFIER"> & {
  ASSETS: Pick<Fetcher, "fetch">;
  EMAIL?: SendEmail;
};

export function createServices(config: Config, bindings: Bindings): Services {
  const access = { url: config.LIBSQL_URL, authToken: config.LIBSQL_AUTH_TOKEN };
  const database = createDatabase(access);
  const replica = createReplicaReads(config);
  const lists = createAgentLists(replica.database);
  const users = createUserStore(database);
  const agents = createAgentStore(database);
  const apps = createAppStore(database);
  const groups = createGroupStore(database);
  const visibleGroups = createVisibleGroups(users, apps);
  const selectors = createSelectors(groups, visibleGroups);
  const agentCache = createAgentCache(agents);
  const labelledAgents = createLabelledAgents(lists);
  const rateLimiter = createRateLimiter(database);
  const { PASSWORDS_URL, PASSWORDS_TOKEN } = config;
  const remotePasswords =
    PASSWORDS_URL !== undefined && PASSWORDS_TOKEN !== undefined
      ? createRemotePasswords({ url: PASSWORDS_URL, token: PASSWORDS_TOKEN })
      : undefined;
  const passwords = remotePasswords ?? edgePasswords;
  const isSignupOpen = config.SIGNUP === "open";
  const encryptor = createEncryptor(config.ENCRYPTION_KEY);
  const secretHasher = createSecretHasher(config.CREDENTIAL_PEPPER);
  const tokens = createTokens({
    keys: config.JWT_KEYS,
    issuer: config.JWT_ISSUER,
    lifetimeSeconds: config.TOKEN_LIFETIME_SECONDS,
  });
  const shards = createShardClient(bindings.AGENT_SHARD, createPlacement(config));
  const clickhouse = createClickHouse(config);
  const telemetry = createTelemetryStore(clickhouse);
  const readings = createReadings(telemetry, shards);
  const outbox = createOutbox(database);
  const quotas = quotasOf(config);
  const jobStore = createJobStore(database, Date.now, quotas);
  const streams = createStreamClient(bindings.JOB_STREAM);
  const publisher = publisherOf(bindings.PUBLISHER);
  const notifier = notifierOf(bindings.NOTIFIER);
  const wakeNotifier = () => waitUntil(notifier.wake());
  const ledger = ledgerOf(bindings.LEDGER);
  const recorder = new MetricRecorder({ ledger, now: Date.now });
  const health = createHealth(createComponentChecks(config, database, clickhouse, publisher.check));
  const jobCache = createJobCache(jobStore);
  const ownedJobs = createOwnedJobs(database, streams);
  const rechecks = createJobRechecks(database, streams);
  const enrolmentTokenStore = createEnrolmentTokenStore(database);
  const enrolment = {
    store: enrolmentTokenStore,
    settings: {
      token: config.ENROLMENT_TOKEN,
      maxUses: config.ENROLMENT_MAX_USES,
      expiresAtMs: config.ENROLMENT_EXPIRES_AT,
    },
  };
  const eventLog = createEventLog(database);
  const callbacks = createCallbacks({
    jobStore,
    jobCache,
    streams,
    outbox,
    emulatorReports: createEmulatorReports(createPartStore(database), outbox),
  });

  const login = withLoginMetrics(
    createLogin({ users, agents, apps, rateLimiter, passwords, secretHasher, apiKeys: encryptor, tokens }),
    recorder,
  );
  const authenticate = createAuthenticate({
    tokens,
    users,
    agents,
    apps,
    groups,
    enrolmentTokens: enrolmentTokenStore,
    onChanges: agentCache.remove,
    auditFeed: replica.follow(
      createAuditFeed(database, () => {
        waitUntil(pruneAuditTrail(database, config.AUDIT_DAYS * DAY_MS));
        wakeNotifier();
      }),
    ),
    serviceTokens: { setup: config.SETUP_TOKEN, enrolment: config.ENROLMENT_TOKEN, scraper: config.METRICS_TOKEN },
  });
  const authenticateLogin = createAuthenticateLogin(login, authenticate);
  const clientAddress = clientAddressBy(config.CLIENT_ADDRESS_HEADER);
  const reports = withIngestMetrics(
    createIngest(agents, shards, callbacks.acceptCommandResult, config.TELEMETRY_DAYS),
    recorder,
  );

  const silences = createSilenceStore(database);
  const eventSink = createEventSink(database, createSilenceReader(database, silences, groups));

  return {
    ...createServicesOnDemand({
      clickhouse,
      telemetry,
      telemetryDays: config.TELEMETRY_DAYS,
      readings,
      shards,
      agents,
      agentCache,
      labelledAgents,
      selectors,
    }),
    agents: createAgents({ store: agents, passwords, enrolment: createEnrolment(enrolment), ownedJobs, rechecks }),
    alertRules: createAlertRules({
      store: createRuleStore(database, groups),
      selectors,
      refreshShards: shards.refreshRules,
    }),
    alerts: createAlerts(createAlertStore(database), selectors),
    apps: createApps({ store: apps, apiKeys: encryptor, groups, ownedJobs, rechecks }),
    assets: bindings.ASSETS,
    auditTrail: createAuditTrail(database),
    callbacks,
    authenticate,
    authenticateLogin: (credentials, { requestId, request }) =>
      authenticateLogin(credentials, { requestId, address: clientAddress(request) }),
    clientAddress,
    commands: createCommands({
      agents,
      store: createCommandStore(database, quotas),
      rateLimiter,
      encryptor,
      wakePublisher: publisher.wake,
    }),
    corsOrigins: config.CORS_ORIGINS,
    countRequest: createCountRequest(recorder),
    emulators: createEmulators({
      jobStore,
      streams,
      outbox,
      rateLimiter,
      encryptor,
      wakePublisher: publisher.wake,
      store: createSpinupStore(database, quotas),
      emulations: createEmulationStore(database),
      gazetteer: createGazetteer(replica.database),
      secretHasher,
    }),
    events: createEventReader({ eventLog, newest: createNewestEvent(eventLog) }),
    groups: createGroups(groups, visibleGroups, rechecks),
    enrolmentTokens: createEnrolmentTokens(enrolment),
    health,
    intake: createIntake({
      ingest: reports,
      agents: agentCache,
      registration: createRegistration(agents, secretHasher),
    }),
    jobs: createJobs({ jobStore, jobCache, streams, agents, outbox }),
    labelling: createLabelling({
      store: createLabelStore(database),
      bulkStore: createLabelStore(createDatabase({ ...access, timeoutMs: BULK_TIMEOUT_MS })),
      agents,
      selectors,
      rechecks,
    }),
    loggedRequests: config.LOG_REQUESTS,
    login,
    recovery: createRecovery({
      users,
      rateLimiter,
      passwords,
      mailer: createMailer({ from: config.MAIL_FROM, url: config.MAIL_URL, binding: bindings.EMAIL }),
      publicUrl: config.PUBLIC_URL,
      rechecks,
    }),
    dashboard: {
      map: { tiles: config.MAP_TILES_URL ?? null, attribution: config.MAP_ATTRIBUTION ?? null },
      sign_up: isSignupOpen,
    },
    metrics: createMetrics(agents, agentCache, readings, shards, config.LIVE_WINDOW_MINUTES * 60_000),
    overview: createOverview({ outlines: lists.outlines, names: agents.names }, readings, shards),
    reports,
    scrape: createScrape({ recorder, ledger, health, ...createCollectors({ shards, outbox, jobStore }) }),
    selectors,
    silences: createSilences({ store: silences, selectors, release: eventSink.release }),
    subscriptions: createSubscriptions({
      store: createSubscriptionStore(database),
      encryptor,
      selectors,
      rateLimiter,
      testDelivery: notifier.sendTest,
      wakeNotifier,
      allowsPrivate: config.WEBHOOK_NETWORKS === "private",
    }),
    outbox,
    tokens,
    users: createUsers({
      store: users,
      passwords,
      isSignupOpen,
      newUserGrants: config.NEW_USERS,
      groups,
      ownedJobs,
      rechecks,
    }),
  };
}
