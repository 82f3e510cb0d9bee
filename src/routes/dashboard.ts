import { type Context, Hono } from "hono";
import * as z from "zod";
import { acceptsGzip, clientAcceptEncoding } from "../http/accept-encoding.ts";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { NotFound } from "../lib/errors.ts";
import { DashboardSettings } from "../schemas/service.ts";
import type { Services } from "../services.ts";

/** Content types of the files of the dashboard, by extension. */
const CONTENT_TYPES: Record<string, string> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  json: "application/json",
};
/** Every file except the page is named by a hash of its content, so it never changes. */
const FOREVER = "public, max-age=31536000, immutable";

/** Serves the dashboard: its static files, and the settings that it needs before a user logs in. */
export function dashboardRoutes(operation: Operation, { assets, dashboard }: Pick<Services, "assets" | "dashboard">) {
  const file = (summary: string, hidden?: true) =>
    operation({
      action: "service.dashboard",
      tag: "Pages",
      summary,
      response: z.string(),
      produces: "text/html",
      ...(hidden && { hidden }),
    });
  // The Worker serves the files itself, so that the headers are the same on Cloudflare and on a self-hosted machine.
  const serve = async (c: Context<AppEnv>, name: string, cacheControl: string): Promise<Response> => {
    const type = CONTENT_TYPES[name.split(".").at(-1) ?? ""];
    if (type === undefined) throw new NotFound("File");
    const { ok, body } = await assets.fetch(`http://assets/${name}`);
    if (!ok || body === null) throw new NotFound("File");
    const useGzip = acceptsGzip(clientAcceptEncoding(c.req.raw));
    return c.body(body, 200, {
      "Content-Type": type,
      "Cache-Control": cacheControl,
      Vary: "Accept-Encoding",
      // The platform compresses the body.
      ...(useGzip && { "Content-Encoding": "gzip" }),
    });
  };

  return new Hono<AppEnv>()
    .get("/", file("Get the dashboard"), async (c) => await serve(c, "index.html", "no-cache"))
    .get(
      "/assets/:file{[\\w.-]+}",
      file("Get a file of the dashboard", true),
      async (c) => await serve(c, `assets/${c.req.param("file")}`, FOREVER),
    )
    .get(
      "/dashboard.json",
      operation({
        action: "service.dashboard",
        tag: "Pages",
        summary: "Get the settings of the dashboard",
        response: DashboardSettings,
      }),
      (c) => c.json(dashboard, 200, { "Cache-Control": "no-cache" }),
    );
}
