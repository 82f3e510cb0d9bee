import { session, waitForNewToken } from "../app/session.ts";
import { updateClock } from "./clock.ts";
import { reportReachable, reportUnreachable, watchReadiness } from "./connection.ts";
import { isFromService, isRepeatable, sendRepeatedly } from "./retries.ts";

/** One invalid input field: its path and the reason. */
export interface FieldError {
  loc: (string | number)[];
  msg: string;
}

/** The service rejected a request. */
export class ApiError extends Error {
  override name = "ApiError";
  readonly status: number;
  readonly fieldErrors: readonly FieldError[];
  readonly retryAfterMs: number | undefined;

  constructor(status: number, message: string, fieldErrors: readonly FieldError[] = [], retryAfterMs?: number) {
    super(message);
    this.status = status;
    this.fieldErrors = fieldErrors;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Returns whether an error is shown at the fields of a form. */
export const hasFieldErrors = (error: Error | undefined): boolean =>
  error instanceof ApiError && error.fieldErrors.length > 0;

/** The service did not respond. */
export class Unreachable extends Error {
  override name = "Unreachable";
  constructor() {
    super("The service cannot be reached. Check the network connection, then try again.");
  }
}

export const V1 = "/api/v1";
export const pathTo = (...segments: string[]): string => `${V1}/${segments.map(encodeURIComponent).join("/")}`;

export type Query = Record<string, string | number | readonly string[] | undefined>;

export interface CallOptions {
  query?: Query | undefined;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as a form. */
  form?: Record<string, string>;
  /** Sent as CSV. */
  csv?: string;
  signal?: AbortSignal | undefined;
  /** Sends no token: for requests before sign-in. */
  isAnonymous?: boolean;
  /** Sent instead of the session's token. */
  token?: string;
}

export type Method = "GET" | "POST" | "PUT" | "DELETE";

/** Sends a request to the service and returns its JSON. If the session's token has expired, waits until the user signs in again, then repeats it. */
export const call = async <T>(method: Method, path: string, options?: CallOptions): Promise<T> =>
  (await (await request(method, path, options)).json()) as T;

/** Like `call`, for a response that is not JSON. */
export const callForText = async (method: Method, path: string, options?: CallOptions): Promise<string> =>
  await (await request(method, path, options)).text();

/** A file that the service generates. */
export interface ReceivedFile {
  name: string;
  content: Blob;
}

/** Like `call`, for a response that is a file. */
export async function callForFile(path: string, query: Query): Promise<ReceivedFile> {
  const response = await request("GET", path, { query });
  const [, name = "download"] = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") ?? "") ?? [];
  try {
    return { name, content: await response.blob() };
  } catch {
    throw new Error("The connection was lost before the file was complete. Try again.");
  }
}

async function request(method: Method, path: string, options: CallOptions = {}): Promise<Response> {
  for (;;) {
    const token = options.isAnonymous ? undefined : (options.token ?? session.value?.token);
    const response = await send(method, path, options, token);
    if (response.ok) return response;
    if (response.status === 401 && token !== undefined && options.token === undefined) {
      await waitForNewToken(token, options.signal);
      continue;
    }
    throw await errorFrom(response);
  }
}

async function send(
  method: Method,
  path: string,
  { query, body, form, csv, signal }: CallOptions,
  token: string | undefined,
): Promise<Response> {
  const headers = new Headers();
  if (token !== undefined) headers.set("Authorization", `Bearer ${token}`);
  if (body !== undefined) headers.set("Content-Type", "application/json");
  if (csv !== undefined) headers.set("Content-Type", "text/csv");
  let sentMs = Date.now();
  const sendOnce = (): Promise<Response> => {
    sentMs = Date.now();
    return fetch(path + search(query), {
      method,
      headers,
      body: form !== undefined ? new URLSearchParams(form) : body !== undefined ? JSON.stringify(body) : (csv ?? null),
      signal: signal ?? null,
    });
  };
  try {
    // A request that is not safe to repeat may have been executed although its response was lost.
    const response = isRepeatable(method, path, headers) ? await sendRepeatedly(sendOnce, signal) : await sendOnce();
    if (!isFromService(response)) throw new Unreachable();
    updateClock(response.headers.get("Date"), sentMs, Date.now());
    reportReachable();
    if (response.status === 503) void watchReadiness();
    return response;
  } catch (error) {
    if (signal?.aborted) throw error;
    reportUnreachable();
    throw new Unreachable();
  }
}

function search(query: Query = {}): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((one) => [name, String(one)]),
  );
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs)}`;
}

async function errorFrom(response: Response): Promise<ApiError> {
  const { detail } = (await response.json().catch(() => ({}))) as { detail?: string | FieldError[] };
  const retryAfterS = Number(response.headers.get("Retry-After") ?? Number.NaN);
  const retryAfterMs = Number.isFinite(retryAfterS) ? retryAfterS * 1_000 : undefined;
  const fieldErrors = Array.isArray(detail) ? detail : [];
  return new ApiError(response.status, messageFor(response.status, detail), fieldErrors, retryAfterMs);
}

const NOT_ALLOWED = "Not enough permissions";

function messageFor(status: number, detail: string | FieldError[] | undefined): string {
  if (Array.isArray(detail)) return detail.map(({ msg }) => msg.replace(/^Value error, /, "")).join("; ");
  // The service explains some rejections. This one only repeats the status.
  if (status === 403 && (detail ?? NOT_ALLOWED) === NOT_ALLOWED)
    return "Your account does not have permission to do this. Ask an administrator.";
  if (status === 503) return "The service is temporarily unavailable. Try again in a moment.";
  return detail ?? `The service responded with status ${status}.`;
}
