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
  const freshUser = fresh.map((name) => `${name}@fuzz.invalid`);
  const user = fc.oneof(fc.constantFrom(...users), freshUser);
  const secretText = fc.string({ unit: "grapheme", minLength: 4, maxLength: 20 });
  const anySecret = secretText.map((text) => `${SECRET_MARK} ${text}`);
  const secrets = fc.oneof(fc.constant(secret), anySecret);
  const nowMs = Date.now();
  const time = fc.oneof(
    fc.integer({ min: -86_400_000, max: 1_000 }).map((ms) => new Date(nowMs + ms).toISOString()),
    fc.integer({ min: -86_400, max: 0 }).map((s) => Math.floor(nowMs / 1000) + s),
  );
  const metric = fc.string({ minLength: 1, maxLength: 8 });
  const payload = fc.dictionary(metric, fc.double({ noNaN: true }), { maxKeys: 3 });
  return {
    ...named("ap_id agent agent_id ap_ids", agent),
    ...named("password new_password api_key client_secret", secrets),
    ...named("since ts received_at start_time from", time),
    username: user,
    actor: user.map((name) => `user:${name}`),
    object: agent.map((name) => `agent:${name}`),
    app_name: fc.oneof(fc.constantFrom(...apps), fresh),
    job_number: fc.oneof(fc.constantFrom(...jobs), fresh),
    token: anySecret,
    scope: fc.constantFrom("", "agents:read", "agents:read telemetry:read", "nonsense"),
    window: fc.constantFrom("5", "30s", "1h", "7d"),
    ...named("end_time to", fc.constant(new Date(nowMs + 2_000).toISOString())),
    ...named("metric rate_of", fc.constantFrom("load", "users", "a.b")),
    metrics: fc.constantFrom("load", "load,users", "a.b"),
    command: fc.constantFrom("power_off", "power_on", "restart", "set interval 10", "status", `${prefix} command`),
    locations: fc.constantFrom("51.5, -0.12", "Bristol", "9C3XGV4C+XV"),
    text: fc.constantFrom("Br", "Bris", "Paris, US"),
    num_access_points: fc.integer({ min: 1, max: 2 }),
    num_devices: fc.integer({ min: 1, max: 5 }),
    duration: fc.integer({ min: 1, max: 20 }),
    report: fc.oneof(fc.record({ payload }), fc.record({ samples: backlog })),
    result: fc.record({ job_number: fc.constantFrom(...jobs), status: fc.constantFrom("done", "failed") }),
  };
}

const named = (names: string, values: fc.Arbitrary<unknown>): Vocabulary =>
  Object.fromEntries(names.split(" ").map((name) => [name, values]));
