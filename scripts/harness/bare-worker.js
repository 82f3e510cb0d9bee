/** The baselines of the benchmarks: a route of Hono and a Durable Object, with nothing behind them. */
import { DurableObject } from "cloudflare:workers";
import { Hono } from "hono";

/** The baseline of job streams: writes each message to disk as one row, then sends it to the open sockets. */
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

export default new Hono()
  .get("/", (c) => c.json({ status: "ok" }))
  // Reads a report of an agent and responds as the product does, without anything in between.
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
