import * as z from "zod";
import { splitAddresses } from "./lib/addresses.ts";
import { parseSelector, SelectorError } from "./lib/selectors.ts";

/** Parses the settings of the Worker, once. Errors name the setting and never contain its value, which may be a secret. */

const urlWith = (protocols: string[], hint = "") =>
  z
    .string({ error: "is missing" })
    .refine((value) => URL.canParse(value) && protocols.includes(new URL(value).protocol), {
      error: `must be a URL that begins with ${protocols.map((protocol) => `${protocol}//`).join(" or ")}${hint}`,
    });
const url = (...protocols: string[]) => urlWith(protocols);

/** The URLs of the nodes of a server, separated by commas. */
const urls = (...protocols: string[]) =>
  z
    .string({ error: "is missing" })
    .transform(splitAddresses)
    .pipe(z.array(urlWith(protocols, ", or several, separated by commas")).min(1, "is missing"));

/** One key, or two during a rotation, separated by a comma. The first is in use, the second is the previous one. */
const base64Keys = z
  .string({ error: "is missing" })
  .refine((value) => /^[A-Za-z0-9+/]{43}=(,[A-Za-z0-9+/]{43}=)?$/.test(value), {
    error: "must be 32 bytes in base64, or two such keys separated by a comma",
  })
  .transform((value) => value.split(","));

const signingKey = z.object({
  kty: z.literal("EC"),
  crv: z.literal("P-256"),
  kid: z.string().min(1),
  x: z.string(),
  y: z.string(),
  d: z.string(),
});

const json = z.string({ error: "is missing" }).transform((text, context) => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    context.addIssue({ code: "custom", message: "is not JSON" });
    return z.NEVER;
  }
});

const wholeNumber = (min: number, max: number) =>
  z.coerce
    .number({ error: "must be a number" })
    .refine((value) => Number.isInteger(value) && value >= min && value <= max, {
      error: `must be a whole number from ${min} to ${max}`,
    });

/** A name that needs no quotes in SQL. */
const sqlName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must contain only letters, digits and underscores, and not begin with a digit");

/** The grants of new users: `none`, a role, or a role and a selector after a colon. Null: operator of all agents. */
const newUserGrants = z.string().transform((text, context) => {
  if (text === "none") return [];
  const [, role, selector = ""] = /^(viewer|operator|manager)(?::(.*))?$/s.exec(text) ?? [];
  const grant = z.object({ role: z.enum(["viewer", "operator", "manager"]), selector: z.string() });
  const parsed = grant.safeParse({ role, selector: selector.trim() });
  try {
    if (!parsed.success) throw new SelectorError(0, "`none`, `viewer`, `operator` or `manager`");
    parseSelector(parsed.data.selector);
    return parsed.data.role === "operator" && parsed.data.selector === "" ? null : [parsed.data];
  } catch (error) {
    if (!(error instanceof SelectorError)) throw error;
    context.addIssue({ code: "custom", message: `is not a grant, as in viewer:site=uk/*: ${error.message}` });
    return z.NEVER;
  }
});

/** Issuer of the tokens if JWT_ISSUER is not set. */
export const DEFAULT_ISSUER = "multi-access-network-controller";

const EnvironmentFields = z.object({
  LIBSQL_URL: url("http:", "https:", "libsql:"),
  LIBSQL_AUTH_TOKEN: z.string().optional(),
  LIBSQL_READ_URL: url("http:", "https:", "libsql:").optional(),
  CLICKHOUSE_URL: urls("http:", "https:"),
  CLICKHOUSE_USER: z.string().default("default"),
  CLICKHOUSE_PASSWORD: z.string().default(""),
  CLICKHOUSE_DATABASE: sqlName.default("controller"),
  CLICKHOUSE_CLUSTER: sqlName.optional(),
  CLICKHOUSE_SHARDS: wholeNumber(1, 256).default(1),
  CLICKHOUSE_REPLICATION: z.enum(["keeper", "none"], { error: "must be keeper or none" }).default("keeper"),
  CLICKHOUSE_INSERT_QUORUM: z
    .string()
    .regex(/^(auto|[1-9])$/, "must be auto, or a number from 1 to 9")
    .default("auto"),
  TELEMETRY_DAYS: wholeNumber(1, 3_650).default(30),
  ROLLUP_DAYS: wholeNumber(1, 3_650).default(400),
  AUDIT_DAYS: wholeNumber(1, 3_650).default(400),
  EVENT_DAYS: wholeNumber(1, 3_650).default(30),
  EMULATION_RETENTION_HOURS: wholeNumber(1, 8_760).default(24),
  EMULATED_PER_ACCOUNT: wholeNumber(1, 1_000_000).default(10_000),
  EMULATED_TOTAL: wholeNumber(1, 1_000_000).default(20_000),
  EMULATED_KEPT_PER_ACCOUNT: wholeNumber(1, 10_000_000).default(30_000),
  EMULATED_KEPT_TOTAL: wholeNumber(1, 10_000_000).default(100_000),
  OPEN_JOBS_PER_ACCOUNT: wholeNumber(1, 1_000_000).default(5_000),
  OPEN_JOBS_TOTAL: wholeNumber(1, 1_000_000).default(50_000),
  LONG_LIVE_JOBS_PER_ACCOUNT: wholeNumber(0, 1_000_000).default(10),
  LONG_LIVE_JOBS_TOTAL: wholeNumber(0, 1_000_000).default(100),
  MQTT_URL: urls("ws:", "wss:", "mqtt:", "mqtts:"),
  JWT_KEYS: json.pipe(
    z
      .array(signingKey, { error: "must be a JSON array of one or two private ES256 keys (JWK) with a kid" })
      .min(1, "must hold at least one key")
      .max(2, "must hold at most two keys"),
  ),
  JWT_ISSUER: z.string().default(DEFAULT_ISSUER),
  TOKEN_LIFETIME_SECONDS: wholeNumber(60, 86_400).default(3600),
  ENCRYPTION_KEY: base64Keys,
  CREDENTIAL_PEPPER: base64Keys,
  SETUP_TOKEN: z.string().min(16, "must have at least 16 characters").optional(),
  ENROLMENT_TOKEN: z.string().min(16, "must have at least 16 characters").optional(),
  ENROLMENT_MAX_USES: wholeNumber(1, 1_000_000_000).optional(),
  ENROLMENT_EXPIRES_AT: z.iso
    .datetime({ offset: true, error: "must be a time with an offset, as in 2027-01-31T00:00:00Z" })
    .transform((text) => Date.parse(text))
    .optional(),
  METRICS_TOKEN: z.string().min(16, "must have at least 16 characters").optional(),
  SIGNUP: z.enum(["open", "closed"], { error: "must be open or closed" }).default("closed"),
  NEW_USERS: newUserGrants.default([]),
  PASSWORDS_URL: url("http:", "https:").optional(),
  PASSWORDS_TOKEN: z.string().min(16, "must have at least 16 characters").optional(),
  AGENT_SHARDS: wholeNumber(1, 256).default(4),
  COMMIT_GATHER_MS: wholeNumber(0, 5_000).default(50),
  FLUSH_INTERVAL_MS: wholeNumber(1, 60_000).default(2_000),
  LIVE_WINDOW_MEGABYTES: wholeNumber(1, 4_096).default(32),
  LIVE_WINDOW_MINUTES: wholeNumber(1, 60).default(15),
  PUBLIC_URL: url("http:", "https:")
    .transform((value) => value.replace(/\/+$/, ""))
    .optional(),
  WEBHOOK_NETWORKS: z.enum(["public", "private"], { error: "must be public or private" }).default("public"),
  MAIL_FROM: z.email("must be an e-mail address").optional(),
  MAIL_URL: url("http:", "https:").optional(),
  CLIENT_ADDRESS_HEADER: z.string().default("CF-Connecting-IP"),
  LOG_REQUESTS: z.enum(["all", "failures"], { error: "must be all or failures" }).default("all"),
  MAP_TILES_URL: url("http:", "https:")
    .refine((value) => ["{z}", "{x}", "{y}"].every((part) => value.includes(part)), {
      error: "must hold {z}, {x} and {y}",
    })
    .optional(),
  MAP_ATTRIBUTION: z.string().max(200, "must have at most 200 characters").optional(),
  CORS_ORIGINS: z.string().default("").transform(splitAddresses),
});

const Environment = EnvironmentFields.refine(
  ({ SETUP_TOKEN, ENROLMENT_TOKEN }) => SETUP_TOKEN === undefined || SETUP_TOKEN !== ENROLMENT_TOKEN,
  { path: ["ENROLMENT_TOKEN"], error: "must differ from SETUP_TOKEN" },
)
  .refine(
    ({ SETUP_TOKEN, ENROLMENT_TOKEN, METRICS_TOKEN }) =>
      METRICS_TOKEN === undefined || ![SETUP_TOKEN, ENROLMENT_TOKEN].includes(METRICS_TOKEN),
    { path: ["METRICS_TOKEN"], error: "must differ from SETUP_TOKEN and ENROLMENT_TOKEN" },
  )
  .refine(({ PASSWORDS_URL, PASSWORDS_TOKEN }) => (PASSWORDS_URL === undefined) === (PASSWORDS_TOKEN === undefined), {
    path: ["PASSWORDS_TOKEN"],
    error: "must be set if PASSWORDS_URL is set, and only then",
  });

export type Config = z.output<typeof Environment>;

/** The settings of the stores, which are all that a migration needs. */
const Stores = EnvironmentFields.pick({
  LIBSQL_URL: true,
  LIBSQL_AUTH_TOKEN: true,
  CLICKHOUSE_URL: true,
  CLICKHOUSE_USER: true,
  CLICKHOUSE_PASSWORD: true,
  CLICKHOUSE_DATABASE: true,
  CLICKHOUSE_CLUSTER: true,
  CLICKHOUSE_SHARDS: true,
  CLICKHOUSE_REPLICATION: true,
  CLICKHOUSE_INSERT_QUORUM: true,
  TELEMETRY_DAYS: true,
  ROLLUP_DAYS: true,
});
export type StoresConfig = z.output<typeof Stores>;

export class BadConfiguration extends Error {
  override name = "BadConfiguration";
}

export const parseEnv = (env: object): Config => parse(Environment, env);
export const parseStoresEnv = (env: object): StoresConfig => parse(Stores, env);

export const SETTINGS: string[] = Object.keys(EnvironmentFields.shape);

/** Returns the errors in the settings, by name. */
export function checkEnv(env: object): Map<string, string> {
  const parsed = z.safeParse(Environment, withoutEmpty(env));
  return parsed.success ? new Map() : errorsOf(parsed.error);
}

/** An empty setting counts as not set: files with settings often list all of them. */
const withoutEmpty = (env: object): object =>
  Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));

const errorsOf = ({ issues }: z.ZodError): Map<string, string> =>
  new Map(issues.map((issue) => [String(issue.path[0]), issue.message]));

function parse<S extends z.ZodType>(schema: S, env: object): z.output<S> {
  const parsed = z.safeParse(schema, withoutEmpty(env));
  if (parsed.success) return parsed.data;
  throw new BadConfiguration(
    [...errorsOf(parsed.error)].map(([name, error]) => `The setting ${name} ${error}.`).join(" "),
  );
}
