import type { HonoRequest } from "hono";
import { fromBase64 } from "../../lib/encoding.ts";
import type { Credentials } from "../route-registry.ts";

/**
 * Credentials of clients that cannot log in: collectors have a name and a key in their configuration, and send both with every request.
 * The name is that of an app; `agent/` before it makes it that of an agent.
 */

const AGENT_PREFIX = "agent/";

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Returns what the header `Authorization: Basic` has. */
export function basicCredentials(request: HonoRequest): Credentials | undefined {
  const [, encoded] = /^basic ([A-Za-z0-9+/]+={0,2})$/i.exec(request.header("Authorization") ?? "") ?? [];
  return encoded === undefined ? undefined : split(decode(encoded));
}

/** InfluxDB's clients send `Authorization: Token` with a token or with `name:key`. Older ones have parameters `u` and `p`. */
export function influxCredentials(request: HonoRequest): Credentials | undefined {
  const [, token] = /^token (.+)$/i.exec(request.header("Authorization") ?? "") ?? [];
  if (token !== undefined) return split(token) ?? { token };
  const [name, key] = [request.query("u"), request.query("p")];
  if (request.header("Authorization") !== undefined || name === undefined || key === undefined) {
    return basicCredentials(request);
  }
  return withKind(name, key);
}

/** OpenWISP's agent sends its key in the parameter `key`: here the password of the agent that the path names. */
export function openWispCredentials(request: HonoRequest): Credentials | undefined {
  const [id, key] = [request.param("id"), request.query("key")];
  if (request.header("Authorization") !== undefined || id === undefined || key === undefined) {
    return basicCredentials(request);
  }
  return { loginType: "agent", username: id, password: key };
}

function decode(encoded: string): string {
  try {
    return utf8.decode(fromBase64(encoded));
  } catch {
    return "";
  }
}

/** Splits at the first colon. */
function split(text: string): Credentials | undefined {
  const colon = text.indexOf(":");
  return colon < 0 ? undefined : withKind(text.slice(0, colon), text.slice(colon + 1));
}

const withKind = (name: string, password: string): Credentials =>
  name.startsWith(AGENT_PREFIX)
    ? { loginType: "agent", username: name.slice(AGENT_PREFIX.length), password }
    : { loginType: "third_party_app", username: name, password };
