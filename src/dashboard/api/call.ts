import { renewed, session } from "../app/session.ts";
import { heardTime } from "./clock.ts";
import { wentAway, wentWell, wentWrong } from "./connection.ts";
import { isFromService, isRepeatable, sendRepeatedly } from "./retries.ts";

/** A field that the service did not like, and why. */
export interface FieldError {
  loc: (string | number)[];
  msg: string;
}

/** The service said no. */
export class ApiError extends Error {
  override name = "ApiError";
  readonly status: number;
  readonly faults: readonly FieldError[];
  readonly retryAfterMs: number | undefined;

  constructor(status: number, message: string, faults: readonly FieldError[] = [], retryAfterMs?: number) {
    super(message);
    this.status = status;
    this.faults = faults;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Nobody answered. */
export class Unreachable extends Error {
  override name = "Unreachable";
  constructor() {
    super("The service cannot be reached. Trying again helps once it is back.");
  }
}

export type Query = Record<string, string | number | readonly string[] | undefined>;

export interface CallOptions {
  query?: Query | undefined;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as a form. */
  form?: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** Without a token: for those who have none yet. */
  isAnonymous?: boolean;
  /** Instead of the session's. */
  token?: string;
}

export type Method = "GET" | "POST" | "PUT" | "DELETE";

/** One call of the service. With a token that has ended it waits until the person has signed in again, then goes on. */
export async function call<T>(method: Method, path: string, options: CallOptions = {}): Promise<T> {
  for (;;) {
    const token = options.isAnonymous ? undefined : (options.token ?? session.get()?.token);
    const response = await answerTo(method, path, options, token);
    if (response.ok) return (await response.json()) as T;
    if (response.status === 401 && token !== undefined && options.token === undefined) {
      await renewed(token, options.signal);
      continue;
    }
    throw await refusal(response);
  }
}

async function answerTo(
  method: Method,
  path: string,
  { query, body, form, signal }: CallOptions,
  token: string | undefined,
): Promise<Response> {
  const headers = new Headers();
  if (token !== undefined) headers.set("Authorization", `Bearer ${token}`);
  if (body !== undefined) headers.set("Content-Type", "application/json");
  let askedMs = Date.now();
  const send = (): Promise<Response> => {
    askedMs = Date.now();
    return fetch(path + search(query), {
      method,
      headers,
      body: form === undefined ? (body === undefined ? null : JSON.stringify(body)) : new URLSearchParams(form),
      signal: signal ?? null,
    });
  };
  try {
    // A request that is not safe to repeat may have been executed although its response was lost.
    const response = isRepeatable(method, path, headers) ? await sendRepeatedly(send, signal) : await send();
    if (!isFromService(response)) throw new Unreachable();
    heardTime(response.headers.get("Date"), askedMs, Date.now());
    wentWell();
    if (response.status === 503) void wentWrong();
    return response;
  } catch (error) {
    if (signal?.aborted) throw error;
    wentAway();
    throw new Unreachable();
  }
}

function search(query: Query = {}): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((one) => [name, String(one)]),
  );
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs)}`;
}

async function refusal(response: Response): Promise<ApiError> {
  const { detail } = (await response.json().catch(() => ({}))) as { detail?: string | FieldError[] };
  const retryAfterS = Number(response.headers.get("Retry-After") ?? Number.NaN);
  const retryAfterMs = Number.isFinite(retryAfterS) ? retryAfterS * 1_000 : undefined;
  const faults = Array.isArray(detail) ? detail : [];
  return new ApiError(response.status, messageOf(response.status, detail), faults, retryAfterMs);
}

function messageOf(status: number, detail: string | FieldError[] | undefined): string {
  if (Array.isArray(detail)) return detail.map(({ msg }) => msg.replace(/^Value error, /, "")).join("; ");
  if (status === 403) return "Your account may not do this.";
  if (status === 503) return "The service cannot do this at the moment. It tries to recover by itself.";
  return detail ?? `The service answered ${status}.`;
}
