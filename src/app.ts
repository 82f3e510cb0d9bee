import { Hono } from "hono";
import { cors } from "hono/cors";
import type { AppEnv } from "./http/context.ts";
import { createNotFound } from "./http/not-found.ts";
import { onError } from "./http/on-error.ts";
import { createOperation } from "./http/operation.ts";
import { requestLog } from "./http/request-log.ts";
import { responseHeaders } from "./http/response-headers.ts";
import { declaredRoutes } from "./http/route-registry.ts";
import { CachingRouter } from "./http/router.ts";
import { agentsRoutes } from "./routes/agents.ts";
import { alertsRoutes } from "./routes/alerts/alerts.ts";
import { backtestsRoutes } from "./routes/alerts/backtests.ts";
import { alertRulesRoutes } from "./routes/alerts/rules.ts";
import { appsRoutes } from "./routes/apps.ts";
import { auditRoutes } from "./routes/audit.ts";
import { brokerRoutes } from "./routes/broker.ts";
import { commandsRoutes } from "./routes/commands.ts";
import { dashboardRoutes } from "./routes/dashboard.ts";
import { emulatorRoutes } from "./routes/emulator.ts";
import { enrolmentTokensRoutes } from "./routes/enrolment-tokens.ts";
import { eventsRoutes } from "./routes/events.ts";
import { groupsRoutes } from "./routes/fleet/groups.ts";
import { labelsRoutes } from "./routes/fleet/labels.ts";
import { overviewRoutes } from "./routes/fleet/overview.ts";
import { callbacksRoutes } from "./routes/jobs/callbacks.ts";
import { jobsRoutes } from "./routes/jobs/jobs.ts";
import { streamsRoutes } from "./routes/jobs/streams.ts";
import { exportsRoutes } from "./routes/metrics/exports.ts";
import { intakeRoutes } from "./routes/metrics/intake.ts";
import { serviceRoutes } from "./routes/service.ts";
import { subscriptionsRoutes } from "./routes/subscriptions.ts";
import { telemetryRoutes } from "./routes/telemetry.ts";
import { tokenRoutes } from "./routes/token.ts";
import { usersRoutes } from "./routes/users.ts";
import type { Services } from "./services.ts";

export type App = ReturnType<typeof createApp>;

export function createApp(services: Services) {
  const app = new Hono<AppEnv>({ router: new CachingRouter() });
  app.onError(onError);

  app.use(responseHeaders(tileOrigins(services.dashboard.map.tiles)));
  app.use(requestLog(services.loggedRequests, services.countRequest));
  if (services.corsOrigins.length > 0) {
    app.use(
      cors({
        origin: services.corsOrigins,
        allowHeaders: ["Authorization", "Content-Type", "Idempotency-Key", "X-Request-Id"],
        exposeHeaders: ["X-Request-Id", "Retry-After"],
        maxAge: 86_400,
      }),
    );
  }

  const operation = createOperation(services.authenticate, services.authenticateLogin);
  app.route("/", tokenRoutes(operation, services));
  app.route("/", usersRoutes(operation, services));
  app.route("/", agentsRoutes(operation, services));
  app.route("/", labelsRoutes(operation, services));
  app.route("/", groupsRoutes(operation, services));
  app.route("/", appsRoutes(operation, services));
  app.route("/", enrolmentTokensRoutes(operation, services));
  app.route("/", telemetryRoutes(operation, services));
  app.route("/", intakeRoutes(operation, services));
  app.route("/", exportsRoutes(operation, services));
  app.route("/", overviewRoutes(operation, services));
  app.route("/", backtestsRoutes(operation, services));
  app.route("/", alertsRoutes(operation, services));
  app.route("/", alertRulesRoutes(operation, services));
  app.route("/", brokerRoutes(operation, services));
  app.route("/", commandsRoutes(operation, services));
  app.route("/", emulatorRoutes(operation, services));
  app.route("/", jobsRoutes(operation, services));
  app.route("/", callbacksRoutes(operation, services));
  app.route("/", streamsRoutes(operation, services));
  app.route("/", subscriptionsRoutes(operation, services));
  app.route("/", auditRoutes(operation, services));
  app.route("/", eventsRoutes(operation, services));
  app.route(
    "/",
    serviceRoutes(operation, services, () => declaredRoutes(app.routes)),
  );
  app.route("/", dashboardRoutes(operation, services));

  app.notFound(createNotFound(declaredRoutes(app.routes)));
  return app;
}

/** Returns the origins that may serve map tiles, for the content security policy. */
const tileOrigins = (tiles: string | null): string[] => (tiles === null ? [] : [new URL(tiles).origin]);
