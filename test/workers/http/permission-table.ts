import { PASSWORD, uniqueEmail, uniqueName } from "../support.ts";
import { CALLERS, type Row } from "./permission-row.ts";

/** The permissions of all operations, stated independently of the matrix in the code. */

/** Operations that need no token. */
export const PUBLIC = [
  "POST /api/v1/token/",
  "POST /api/v1/broker/rabbitmq/:check",
  "POST /api/v1/users/signup",
  "POST /api/v1/users/password-recovery",
  "POST /api/v1/users/reset-password",
  "GET /healthz",
  "GET /readyz",
  "GET /.well-known/jwks.json",
  "GET /openapi.json",
  "GET /asyncapi.json",
  "GET /docs",
  "GET /docs/style.css",
  "GET /",
  "GET /assets/:file{[\\w.-]+}",
  "GET /dashboard.json",
];

const newUser = () => ({ username: uniqueEmail(), password: PASSWORD, roles: ["user"] });
const newAgentBody = () => ({ ap_id: uniqueName(), password: PASSWORD, configuration: {} });
const newAppBody = () => ({ app_name: uniqueName(), api_key: PASSWORD, permissions: {} });
export const newRuleBody = () => ({
  name: uniqueName(),
  enabled: false,
  spec: { condition: { metric: "load", op: ">", value: 1 } },
});
const jobAccess = {
  admin: "any",
  user: "own",
  agent: "own",
  app: "own",
  "app without permissions": "own",
  "app of one agent": "own",
} as const;
const callback = (kind: string): Row => ({
  route: `POST /api/v1/callback/${kind}`,
  query: "job_number=",
  object: "job",
  body: () => [],
  isClaimed: true,
  access: jobAccess,
});
const readAccess = { admin: "any", user: "any", agent: "own", app: "any", "app of one agent": "listed" } as const;

/** To what a limited app does not see. */
const unlimitedAccess = { admin: "any", user: "any", app: "any", "app of one agent": "none" } as const;

const viewerAccess = { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" } as const;

const subscriptionAccess = { admin: "any", user: "visible", app: "visible", "app of one agent": "visible" } as const;

export const TABLE: Row[] = [
  { route: "POST /api/v1/users/public", body: newUser, access: { admin: "yes" } },
  { route: "GET /api/v1/users/", access: { admin: "yes" } },
  { route: "POST /api/v1/users/", body: newUser, access: { admin: "yes" } },
  { route: "GET /api/v1/users/me", access: { admin: "yes", user: "yes" } },
  { route: "GET /api/v1/users/:username", object: "user", access: { admin: "any", user: "own" } },
  {
    route: "PUT /api/v1/users/:username",
    object: "user",
    body: () => ({ password: PASSWORD }),
    access: { admin: "any", user: "own" },
  },
  { route: "DELETE /api/v1/users/:username", object: "user", access: { admin: "any", user: "own" } },
  { route: "GET /api/v1/users/:username/grants", object: "user", access: { admin: "any", user: "own" } },
  {
    route: "PUT /api/v1/users/:username/grants",
    object: "user",
    body: () => ({ grants: null }),
    access: { admin: "any" },
  },
  { route: "GET /api/v1/enrolment_tokens/", access: { admin: "yes" } },
  { route: "POST /api/v1/enrolment_tokens/", body: () => ({}), access: { admin: "yes" } },
  { route: "DELETE /api/v1/enrolment_tokens/:id", object: "enrolment token", access: { admin: "any" } },
  { route: "POST /api/v1/agents/public", body: newAgentBody, access: { admin: "yes" } },
  { route: "POST /api/v1/agents/", body: newAgentBody, access: { admin: "yes" } },
  { route: "GET /api/v1/agents/:ap_id", object: "agent", access: readAccess },
  {
    route: "PUT /api/v1/agents/:ap_id",
    object: "agent",
    body: () => ({ configuration: { a: 1 } }),
    access: { admin: "any", agent: "own" },
  },
  { route: "DELETE /api/v1/agents/:ap_id", object: "agent", access: { admin: "any" } },
  { route: "GET /api/v1/agents/:ap_id/labels", object: "agent", access: readAccess },
  {
    route: "PUT /api/v1/agents/:ap_id/labels",
    object: "agent",
    body: () => ({ floor: uniqueName() }),
    access: { admin: "any" },
  },
  { route: "GET /api/v1/labels", access: viewerAccess },
  {
    route: "POST /api/v1/labels",
    body: () => ({ selector: `site=${uniqueName()}`, labels: { floor: "1" } }),
    access: { admin: "yes" },
  },
  { route: "GET /api/v1/labels/export", query: "selector=site%3Dnone", access: viewerAccess },
  {
    route: "POST /api/v1/labels/import",
    body: () => "ap_id,floor\n",
    contentType: "text/csv",
    access: { admin: "yes" },
  },
  { route: "GET /api/v1/groups/", access: viewerAccess },
  // A limited app sees no groups.
  {
    route: "GET /api/v1/groups/:name",
    object: "group",
    access: unlimitedAccess,
  },
  {
    route: "PUT /api/v1/groups/:name",
    object: "group",
    isCreated: true,
    body: () => ({ selector: "" }),
    access: { admin: "any" },
  },
  { route: "DELETE /api/v1/groups/:name", object: "group", access: { admin: "any" } },
  { route: "GET /api/v1/alerts", access: viewerAccess },
  { route: "POST /api/v1/alerts/:id/acknowledge", object: "alert", access: unlimitedAccess },
  { route: "GET /api/v1/alerts/silences", access: viewerAccess },
  {
    route: "POST /api/v1/alerts/silences",
    body: () => ({ selector: `site=${uniqueName()}`, until: new Date(Date.now() + 1_000).toISOString() }),
    access: viewerAccess,
  },
  { route: "DELETE /api/v1/alerts/silences/:id", object: "silence", access: unlimitedAccess },
  { route: "GET /api/v1/alerts/rules", access: viewerAccess },
  { route: "POST /api/v1/alerts/rules", body: newRuleBody, access: { admin: "yes" } },
  {
    route: "GET /api/v1/alerts/rules/:id",
    object: "alert rule",
    access: { admin: "any", user: "any", app: "any", "app of one agent": "any" },
  },
  {
    route: "PUT /api/v1/alerts/rules/:id",
    object: "alert rule",
    body: newRuleBody,
    access: { admin: "any" },
  },
  { route: "DELETE /api/v1/alerts/rules/:id", object: "alert rule", access: { admin: "any" } },
  { route: "GET /api/v1/third_party_apps/", access: { admin: "yes" } },
  { route: "POST /api/v1/third_party_apps/", body: newAppBody, access: { admin: "yes" } },
  {
    route: "GET /api/v1/third_party_apps/:app_name",
    object: "app",
    access: { admin: "any", app: "own", "app without permissions": "own", "app of one agent": "own" },
  },
  {
    route: "PUT /api/v1/third_party_apps/:app_name",
    object: "app",
    body: () => ({ permissions: {} }),
    access: { admin: "any" },
  },
  {
    route: "GET /api/v1/third_party_apps/:app_name/grants",
    object: "app",
    access: { admin: "any", app: "own", "app without permissions": "own", "app of one agent": "own" },
  },
  {
    route: "PUT /api/v1/third_party_apps/:app_name/grants",
    object: "app",
    body: () => ({ grants: null }),
    access: { admin: "any" },
  },
  { route: "DELETE /api/v1/third_party_apps/:app_name", object: "app", access: { admin: "any" } },
  { route: "GET /api/v1/subscriptions/", access: viewerAccess },
  {
    route: "POST /api/v1/subscriptions/",
    body: () => ({ name: "x", target: { kind: "webhook", address: "https://receiver.example.com/" } }),
    access: viewerAccess,
  },
  ...["GET", "PUT", "DELETE"].map(
    (method): Row => ({
      route: `${method} /api/v1/subscriptions/:id`,
      object: "subscription",
      ...(method === "PUT" && { body: () => ({ name: "y" }) }),
      access: subscriptionAccess,
    }),
  ),
  ...["rotate_secret", "test", "resume"].map(
    (path): Row => ({
      route: `POST /api/v1/subscriptions/:id/${path}`,
      object: "subscription",
      access: subscriptionAccess,
    }),
  ),
  { route: "GET /api/v1/audit/", access: { admin: "yes" } },
  { route: "GET /api/v1/events", access: viewerAccess },
  { route: "GET /api/v1/events/ws", access: viewerAccess },
  { route: "GET /metrics", access: { admin: "yes" } },
  { route: "POST /api/v1/agent_update/update", body: () => ({ payload: { x: 1 } }), access: { agent: "yes" } },
  {
    route: "POST /api/v1/bridge/data",
    body: () => ({ messages: [{ ap_id: uniqueName(), received_at: 1, report: {} }] }),
    access: {},
  },
  // None of the apps here has the permission to write.
  {
    route: "POST /api/v1/prometheus/write",
    // An empty message, compressed with snappy.
    body: () => "\0",
    contentType: "application/x-protobuf",
    access: { agent: "yes" },
  },
  { route: "POST /api/v1/otlp/v1/metrics", body: () => ({}), access: { agent: "yes" } },
  ...["/api/v1/influx/write", "/api/v1/influx/api/v2/write", "/api/v2/write"].map(
    (path): Row => ({
      route: `POST ${path}`,
      body: () => "m f=1",
      contentType: "text/plain",
      access: { agent: "yes" },
    }),
  ),
  {
    route: "POST /api/v1/openwisp/api/v1/monitoring/device/:id/",
    object: "agent",
    body: () => ({ type: "DeviceMonitoring" }),
    access: { agent: "own" },
  },
  { route: "GET /api/v1/agents/", access: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" } },
  { route: "GET /api/v1/overview", access: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" } },
  {
    route: "GET /api/v1/metrics/agent_details",
    access: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" },
  },
  {
    route: "POST /api/v1/agent_details/request_all_agents_details",
    access: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" },
  },
  {
    route: "POST /api/v1/agent_data/request_agent_data",
    query: "start_time=1000&end_time=2000&agent_id=",
    object: "agent",
    access: readAccess,
  },
  {
    route: "POST /api/v1/agent_data/request_live_data",
    query: "selector=none&duration=1",
    access: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" },
  },
  {
    route: "POST /api/v1/send_command",
    query: "command=ping&agent_id=",
    object: "agent",
    access: { admin: "any", user: "any", app: "any", "app of one agent": "listed" },
  },
  {
    route: "POST /api/v1/commands",
    body: () => ({ command: "ping", agents: { ap_ids: [uniqueName()] } }),
    access: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" },
  },
  {
    route: "POST /api/v1/emulator/spinup",
    body: () => ({
      emulators: [{ access_point_type: "5G", num_access_points: 1, locations: ["1,1"], num_devices: 1, duration: 1 }],
    }),
    access: { admin: "yes", user: "yes", app: "yes" },
  },
  {
    route: "GET /api/v1/places",
    query: "text=bri",
    access: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" },
  },
  {
    route: "GET /api/v1/emulator/",
    needsNoScope: true,
    access: Object.fromEntries(CALLERS.map((caller) => [caller, "yes"])),
  },
  { route: "DELETE /api/v1/emulator/:job_number", object: "emulator job", access: jobAccess },
  ...["agent_data", "agent_details", "emulator", "command"].map(callback),
  {
    route: "GET /api/v1/jobs/",
    needsNoScope: true,
    access: Object.fromEntries(CALLERS.map((caller) => [caller, "yes"])),
  },
  { route: "GET /api/v1/jobs/:job_number", object: "job", access: jobAccess },
  { route: "DELETE /api/v1/jobs/:job_number", object: "job", access: jobAccess },
  ...["ws", "callback/agent_data/ws", "callback/agent_details/ws", "callback/emulator/ws"].map(
    (path): Row => ({ route: `GET /api/v1/${path}/:job_number`, object: "job", isClaimed: true, access: jobAccess }),
  ),
  { route: "GET /api/v1/metrics/agent_data", query: "agent=", object: "agent", access: readAccess },
  {
    route: "GET /api/v1/metrics/agent_multi_metric_data",
    query: "metrics=x&agent=",
    object: "agent",
    access: readAccess,
  },
  {
    route: "GET /api/v1/metrics/aggregate",
    query: "metrics=x",
    access: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" },
  },
  {
    route: "POST /api/v1/prometheus/read",
    // A request without queries, as a snappy block.
    body: () => "\0",
    contentType: "application/x-protobuf",
    access: viewerAccess,
  },
  { route: "GET /api/v1/metrics/export", query: "selector=site%3Dnone", access: viewerAccess },
  {
    route: "GET /api/v1/metrics/download",
    query: "metrics=x&agent=",
    object: "agent",
    access: { admin: "any", user: "any", app: "any", "app of one agent": "listed" },
  },
  {
    route: "POST /api/v1/alerts/rules/test",
    body: () => ({ rule: { condition: { no_report_s: 60 } }, from: Date.now() - 60_000 }),
    access: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" },
  },
  { route: "GET /api/v1/metrics/agent_metrics", query: "agent=", object: "agent", access: readAccess },
];
