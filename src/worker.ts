import { type App, createApp } from "./app.ts";
import { parseEnv } from "./env.ts";
import { log } from "./lib/log.ts";
import { createServices } from "./services.ts";

export { Notifier } from "./delivery/notifier.ts";
export { Publisher } from "./delivery/publisher.ts";
export { JobStream } from "./jobs/stream/job-stream.ts";
export { Ledger } from "./monitoring/ledger.ts";
export { AgentShard } from "./telemetry/shard/agent-shard.ts";

let app: App | undefined;

export default {
  fetch(request, env, context) {
    try {
      app ??= createApp(createServices(parseEnv(env), env));
    } catch (error) {
      log.error("service configuration invalid", { error: error instanceof Error ? error.message : String(error) });
      return Response.json({ detail: "Internal Server Error" }, { status: 500 });
    }
    return app.fetch(request, env, context);
  },
} satisfies ExportedHandler<Env>;
