/** The floor that every path is measured against: one route of Hono, and nothing behind it. */
import { Hono } from "hono";

export default new Hono().get("/", (c) => c.json({ status: "ok" }));
