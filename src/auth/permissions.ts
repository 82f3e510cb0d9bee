import { NotAllowed } from "../errors.ts";
import type { LoginType } from "./tokens.ts";

/** Who calls, as far as the permission matrix can tell them apart. */
export type CallerKind = "admin" | "user" | "agent" | "app";

/** An authenticated caller. */
export interface Actor {
  loginType: LoginType;
  /** Username, ap_id or app_name. */
  name: string;
  roles: string[];
  scopes: string[];
}

/**
 * The permission matrix: every operation of the interface, and who may call it. What is not here is denied, and an operation
 * cannot be declared without a row.
 */
const matrix = {
  "service.health": "public",
  "service.ready": "public",
  "service.openapi": "public",
  "service.docs": "public",
  "service.keys": "public",
  "token.create": "public",
  "users.signup": "public",
  "users.me": ["admin", "user"],
} as const satisfies Record<string, "public" | readonly CallerKind[]>;

export type Action = keyof typeof matrix;

/** What each role of a user grants. */
const scopesOfRole: Record<string, readonly string[]> = {
  admin: [
    "users:manage",
    "agents:read",
    "agents:manage",
    "apps:manage",
    "telemetry:read",
    "commands:send",
    "emulator:run",
    "callbacks:post",
    "broker:use",
    "audit:read",
  ],
  user: ["agents:read", "telemetry:read", "commands:send", "emulator:run"],
};

export function scopesOf(roles: readonly string[]): string[] {
  return [...new Set(roles.flatMap((role) => scopesOfRole[role] ?? []))];
}

export const isPublic = (action: Action): boolean => matrix[action] === "public";

/** The kinds of caller that may call `action` at all; what they may call it on is for the service to say. */
export function callersOf(action: Action): readonly CallerKind[] {
  const row = matrix[action];
  return row === "public" ? ["admin", "user", "agent", "app"] : row;
}

function kindOf({ loginType, roles }: Actor): CallerKind {
  switch (loginType) {
    case "agent":
      return "agent";
    case "third_party_app":
      return "app";
    case "user":
      return roles.includes("admin") ? "admin" : "user";
  }
}

export function allow(actor: Actor, action: Action): void {
  if (!callersOf(action).includes(kindOf(actor))) throw new NotAllowed();
}
