/** The kinds of expected errors. Only `http/on-error.ts` maps them to HTTP statuses. */
export type ErrorCode =
  | "malformed"
  | "invalid"
  | "not_authenticated"
  | "not_allowed"
  | "not_found"
  | "duplicate"
  | "conflict"
  | "too_large"
  | "unsupported"
  | "upgrade_required"
  | "too_many"
  | "unavailable";

export class DomainError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.name = code;
  }
}

/** One invalid field of the input: an item of the contract's `HTTPValidationError`. */
export interface ValidationItem {
  loc: (string | number)[];
  msg: string;
  type: string;
}

/** Rejects input. The paths of the items are relative to `place`, the part of the request that holds the input. */
export class Invalid extends DomainError {
  readonly items: ValidationItem[];
  readonly place: "body" | "query" | "path" | "header";

  constructor(items: ValidationItem[], place: Invalid["place"] = "body") {
    super("invalid", "Invalid input");
    this.items = items;
    this.place = place;
  }
}

export class Malformed extends DomainError {
  constructor(message: string) {
    super("malformed", message);
  }
}

export class NotAuthenticated extends DomainError {
  constructor(message: "Not authenticated" | "Could not validate credentials" | "Incorrect username or password") {
    super("not_authenticated", message);
  }
}

export class NotAllowed extends DomainError {
  constructor(message = "Not enough permissions") {
    super("not_allowed", message);
  }
}

export class NotFound extends DomainError {
  constructor(resource: string) {
    super("not_found", `${resource} not found`);
  }
}

export class Conflict extends DomainError {
  /** Set if the conflict ends by itself. */
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, retryAfterSeconds?: number) {
    super("conflict", message);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export class TooMany extends DomainError {
  readonly retryAfterSeconds: number;

  constructor(retryAfterSeconds: number, message = "Too many requests") {
    super("too_many", message);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export interface Quota {
  /** The limited resource, in the plural: "open jobs". */
  what: string;
  limit: number;
  scope: "per account" | "in total";
  /** The setting that raises the limit. */
  setting: string;
}

/** One account, or all accounts together, have reached a limit on what may exist at one time. */
export class QuotaExceeded extends DomainError {
  /** Undefined if waiting does not help. */
  readonly retryAfterSeconds: number | undefined;

  constructor({ what, limit, scope, setting }: Quota, retryAfterSeconds?: number) {
    super("too_many", `Quota exceeded: at most ${limit.toLocaleString("en-US")} ${what} ${scope} (${setting})`);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export class Duplicate extends DomainError {
  constructor(resource: string) {
    super("duplicate", `${resource} already exists`);
  }
}

export class TooLarge extends DomainError {
  constructor(input = "Request body") {
    super("too_large", `${input} too large`);
  }
}

export class UpgradeRequired extends DomainError {
  constructor() {
    super("upgrade_required", "Expected a request for a WebSocket");
  }
}

/** A store or another component failed or did not respond in time. The cause is for the log only. */
export class Unavailable extends DomainError {
  readonly retryAfterSeconds = 2;

  constructor(component: string, cause: unknown) {
    super("unavailable", `The ${component} is not available at the moment`, { cause });
  }
}
