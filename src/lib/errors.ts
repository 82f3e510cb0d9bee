/** What can go wrong, in the words of the domain. `http/on-error.ts` alone knows which status each becomes. */
export type ErrorCode =
  | "malformed"
  | "invalid"
  | "not_authenticated"
  | "not_allowed"
  | "not_found"
  | "duplicate"
  | "conflict"
  | "too_large"
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

/** One thing wrong with what the caller sent: the contract's `HTTPValidationError` item. */
export interface ValidationItem {
  loc: (string | number)[];
  msg: string;
  type: string;
}

/** Rejects input. The paths of the items are relative to the input, which is in one place of the request. */
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
  constructor(what: string) {
    super("not_found", `${what} not found`);
  }
}

export class Conflict extends DomainError {
  /** Where it will pass by itself. */
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
  /** What is limited, in the plural: "open jobs". */
  what: string;
  limit: number;
  scope: "per account" | "in total";
  /** The setting that an operator raises it with. */
  setting: string;
}

/** An account, or all accounts together, have as much as they may have at one time. */
export class QuotaExceeded extends DomainError {
  /** Absent if waiting does not help. */
  readonly retryAfterSeconds: number | undefined;

  constructor({ what, limit, scope, setting }: Quota, retryAfterSeconds?: number) {
    super("too_many", `Quota exceeded: at most ${limit.toLocaleString("en-US")} ${what} ${scope} (${setting})`);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export class Duplicate extends DomainError {
  constructor(what: string) {
    super("duplicate", `${what} already exists`);
  }
}

export class TooLarge extends DomainError {
  constructor(what = "Request body") {
    super("too_large", `${what} too large`);
  }
}

export class UpgradeRequired extends DomainError {
  constructor() {
    super("upgrade_required", "Expected a request for a WebSocket");
  }
}

/** A store or another part did not answer, or not in time. The cause is for the log only. */
export class Unavailable extends DomainError {
  readonly retryAfterSeconds = 2;

  constructor(part: string, cause: unknown) {
    super("unavailable", `The ${part} is not available at the moment`, { cause });
  }
}
