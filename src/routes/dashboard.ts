import { type Context, Hono } from "hono";
import * as z from "zod";
import { acceptsGzip } from "../http/accept-encoding.ts";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { NotFound } from "../lib/errors.ts";
import { DashboardSettings } from "../schemas/dashboard.ts";
import type { Services } from "../services.ts";

/** Of the files that a build of the page is made of. */
const TYPES: Record<string, string> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  json: "application/json",
};
/** Every file but the page itself is named by its content. */
const FOREVER = "public, max-age=31536000, immutable";

/** The dashboard: static files, and what the page has to know before anybody signs in. */
export function dashboardRoutes(operation: Operation, { assets, dashboard }: Pick<Services, "assets" | "dashboard">) {
  const file = (summary: string, hidden?: true) =>
    operation({
      action: "service.dashboard",
      tag: "Pages",
      summary,
      answer: z.string(),
      produces: "text/html",
      ...(hidden && { hidden }),
    });
  // Through the Worker, not past it: headers are then the same on Cloudflare and on a machine of one's own.
  const serve = async (c: Context<AppEnv>, name: string, cacheControl: string): Promise<Response> => {
    const type = TYPES[name.split(".").at(-1) ?? ""];
    if (type === undefined) throw new NotFound("File");
    const { ok, body } = await assets.fetch(`http://assets/${name}`);
    if (!ok || body === null) throw new NotFound("File");
    const isPacked = acceptsGzip(clientAcceptEncoding(c.req.raw));
    return c.body(body, 200, {
      "Content-Type": type,
      "Cache-Control": cacheControl,
      Vary: "Accept-Encoding",
      // The platform does the packing.
      ...(isPacked && { "Content-Encoding": "gzip" }),
    });
  };

  return new Hono<AppEnv>()
    .get("/", file("The dashboard"), async (c) => await serve(c, "index.html", "no-cache"))
    .get(
      "/assets/:file{[\\w.-]+}",
      file("What belongs to it", true),
      async (c) => await serve(c, `assets/${c.req.param("file")}`, FOREVER),
    )
    .get(
      "/dashboard.json",
      operation({
        action: "service.dashboard",
        tag: "Pages",
        summary: "Settings of the dashboard",
        answer: DashboardSettings,
      }),
      (c) => c.json(dashboard, 200, { "Cache-Control": "no-cache" }),
    );
}

/** The client's own `Accept-Encoding`: proxies such as Cloudflare and `wrangler dev` replace the header, and keep what it was. */
function clientAcceptEncoding(request: Request): string | undefined {
  const replaced = request.cf?.clientAcceptEncoding;
  return typeof replaced === "string" ? replaced : (request.headers.get("Accept-Encoding") ?? undefined);
}
