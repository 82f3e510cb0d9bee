/** The floors that every path is measured against: a Worker, a route of Hono, an object, and nothing behind them. */
import { DurableObject } from "cloudflare:workers";
import { Hono } from "hono";

/** The floor of the jobs: what a message costs that is written to disk as one row, then sent to the sockets that are there. */
export class Echo extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS message (seq INTEGER PRIMARY KEY, data TEXT NOT NULL)");
  }

  post(data) {
    this.ctx.storage.sql.exec("INSERT INTO message (data) VALUES (?)", data);
    for (const socket of this.ctx.getWebSockets()) socket.send(data);
  }

  fetch() {
    const { 0: client, 1: socket } = new WebSocketPair();
    this.ctx.acceptWebSocket(socket);
    return new Response(null, { status: 101, webSocket: client });
  }

  webSocketMessage() {}
}

const echo = (c) => c.env.ECHO.getByName(c.req.param("name"));

const app = new Hono()
  .get("/", (c) => c.json({ status: "ok" }))
  // A report of an agent, read and answered as the product does, but for everything in between.
  .post("/report", async (c) => {
    const { payload } = await c.req.json();
    const accepted = Object.keys(payload).length;
    return c.json({ status: "success", detail: `${accepted} values stored`, accepted, rejected: [] });
  })
  .get("/echo/:name", (c) => echo(c).fetch(c.req.raw))
  .post("/echo/:name", async (c) => {
    await echo(c).post(await c.req.text());
    return c.json({ status: "ok" });
  });

export default {
  fetch(request, env, ctx) {
    if (request.url.endsWith("/worker")) return Response.json({ status: "ok" });
    return app.fetch(request, env, ctx);
  },
};
