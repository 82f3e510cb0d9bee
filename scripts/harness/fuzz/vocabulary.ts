import * as fc from "fast-check";
import type { Vocabulary } from "./generate.ts";
import { backlog } from "./hostile.ts";

/** The accounts and jobs that a caller knows. */
export interface Names {
  users: readonly string[];
  agents: readonly string[];
  apps: readonly string[];
  jobs: readonly string[];
  /** The secret of some of the accounts. */
  secret: string;
}

/** Contained in every secret of the fuzzer, so that a leaked one is recognised. */
export const SECRET_MARK = "s3cr3t";

/**
 * Returns values that are meaningful to the service, by the name of the field. New accounts have names of the fuzzer and addresses that
 * receive no mail; expensive values are small.
 */
export function vocabulary({ users, agents, apps, jobs, secret }: Names, prefix: string): Vocabulary {
  const fresh = fc.nat(1_000_000).map((n) => `${prefix}-${n}`);
  const agent = fc.oneof(fc.constantFrom(...agents), fresh);
  const user = fc.oneof(
    fc.constantFrom(...users),
    fresh.map((name) => `${name}@fuzz.invalid`),
  );
  const anySecret = fc
    .string({ unit: "grapheme", minLength: 4, maxLength: 20 })
    .map((text) => `${SECRET_MARK} ${text}`);
  const secrets = fc.oneof(fc.constant(secret), anySecret);
  const nowMs = Date.now();
  const time = fc.oneof(
    fc.integer({ min: -86_400_000, max: 1_000 }).map((ms) => new Date(nowMs + ms).toISOString()),
    fc.integer({ min: -86_400, max: 0 }).map((s) => Math.floor(nowMs / 1000) + s),
  );
  const command = fc.constantFrom("power_off", "power_on", "restart", "set interval 10", "status", `${prefix} command`);
  return {
    ap_id: agent,
    agent,
    agent_id: agent,
    ap_ids: agent,
    username: user,
    actor: user.map((name) => `user:${name}`),
    object: agent.map((name) => `agent:${name}`),
    app_name: fc.oneof(fc.constantFrom(...apps), fresh),
    job_number: fc.oneof(fc.constantFrom(...jobs), fresh),
    password: secrets,
    new_password: secrets,
    api_key: secrets,
    token: anySecret,
    client_secret: secrets,
    scope: fc.constantFrom("", "agents:read", "agents:read telemetry:read", "nonsense"),
    window: fc.constantFrom("5", "30s", "1h", "7d"),
    since: time,
    ts: time,
    received_at: time,
    start_time: time,
    end_time: fc.constant(new Date(nowMs + 2_000).toISOString()),
    metrics: fc.constantFrom("load", "load,users", "a.b"),
    command,
    locations: fc.constantFrom("51.5, -0.12", "Bristol", "9C3XGV4C+XV"),
    text: fc.constantFrom("Br", "Bris", "Paris, US"),
    num_access_points: fc.integer({ min: 1, max: 2 }),
    num_devices: fc.integer({ min: 1, max: 5 }),
    duration: fc.integer({ min: 1, max: 20 }),
    report: fc.oneof(
      fc.record({
        payload: fc.dictionary(fc.string({ minLength: 1, maxLength: 8 }), fc.double({ noNaN: true }), { maxKeys: 3 }),
      }),
      fc.record({ samples: backlog }),
    ),
    result: fc.record({ job_number: fc.constantFrom(...jobs), status: fc.constantFrom("done", "failed") }),
  };
}
