import type { BrokerClient } from "./topics.ts";

/** The version in the controller's own tokens, which belong to no account. */
export const NO_ACCOUNT = 0;

/**
 * Returns what a token makes of its client, or undefined if the token is not for the broker. Users, and apps that may not use all topics,
 * only receive the events of their subscriptions, which are about agents that they see.
 */
export function clientKind(
  loginType: "agent" | "third_party_app" | "user",
  scope: readonly string[],
  version: number,
): BrokerClient["kind"] | undefined {
  const mayUseBroker = scope.includes("broker:use");
  if (loginType === "agent") return mayUseBroker ? "agent" : undefined;
  if (loginType === "third_party_app" && mayUseBroker) return version === NO_ACCOUNT ? "controller" : "service";
  return scope.includes("agents:read") ? "subscriber" : undefined;
}
