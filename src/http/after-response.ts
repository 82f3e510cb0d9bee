import { describeError, log } from "../lib/log.ts";
import type { AppContext } from "./context.ts";

/** Work that goes on after the answer is out. Nobody waits for it, so what goes wrong is logged here. */
export function runAfterResponse(c: AppContext, work: () => Promise<void>): void {
  const logged = work().catch((error: unknown) => {
    log.error("background work failed", {
      request_id: c.get("requestId"),
      path: c.req.path,
      error: describeError(error),
    });
  });
  c.executionCtx.waitUntil(logged);
}
