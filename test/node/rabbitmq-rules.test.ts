import { describe, expect, it } from "vitest";
import { loginRejection, mayUseResource, mayUseRoutingKey } from "../../src/broker/rabbitmq-rules.ts";
import type { BrokerClient } from "../../src/broker/topics.ts";

const agent: BrokerClient = { kind: "agent", name: "a" };
const service: BrokerClient = { kind: "service", name: "bridge" };
const controller: BrokerClient = { kind: "controller", name: "notifier" };
const user: BrokerClient = { kind: "subscriber", name: "me@example.co" };

describe("a login at RabbitMQ", () => {
  it.each([
    [agent, "agent/a"],
    [{ kind: "agent", name: "aa:bb-c_1" } as const, "agent/aa:bb-c_1"],
    [service, "bridge-1"],
    [{ kind: "service", name: "my.bridge" } as const, "bridge-1"],
    [controller, "notifier"],
    [user, "subscriber/me@example.co"],
  ])("is accepted for %j with the client id %s", (client, clientId) => {
    expect(loginRejection(client, clientId)).toBeUndefined();
  });

  it.each([
    [{ kind: "agent", name: "a.b" } as const, "agent/a.b", /dot in its name/],
    [agent, "a", /must be agent\/a$/],
    [agent, "agent/b", /must be agent\/a$/],
    [agent, "agent/a/2", /must be agent\/a$/],
    [agent, "bridge-1", /must be agent\/a$/],
    [service, "agent/a", /must not begin with agent\//],
    [service, "subscriber/me@example.co", /must not begin with agent\//],
    [user, "subscriber/you@example.co", /must be subscriber\/me@example.co$/],
    [service, "", /only MQTT clients/],
  ])("is rejected for %j with the client id %s", (client, clientId, reason) => {
    expect(loginRejection(client, clientId)).toMatch(reason);
  });
});

describe("a queue or exchange of RabbitMQ", () => {
  const queue = (clientId: string, permission = "read") => ({
    ...{ kind: "queue", name: `mqtt-subscription-${clientId}qos1`, permission },
  });

  it("may be used by its own client only", () => {
    for (const permission of ["configure", "write", "read"]) {
      expect(mayUseResource(agent, queue("agent/a", permission))).toBe(true);
      expect(mayUseResource(service, queue("bridge-1", permission))).toBe(true);
      expect(mayUseResource(user, queue("subscriber/me@example.co", permission))).toBe(true);
    }
    for (const clientId of ["agent/b", "bridge-1", "agent/aqos1mqtt-subscription-", ""])
      expect(mayUseResource(agent, queue(clientId)), clientId).toBe(false);
    expect(mayUseResource(service, queue("agent/a"))).toBe(false);
    expect(mayUseResource(service, { kind: "queue", name: "other", permission: "read" })).toBe(false);
    expect(mayUseResource(service, { kind: "topic", name: "amq.topic", permission: "read" })).toBe(false);
  });

  it("may be the exchange of MQTT, which no client may configure", () => {
    const exchange = (name: string, permission: string) =>
      mayUseResource(agent, { kind: "exchange", name, permission });
    expect([exchange("amq.topic", "read"), exchange("amq.topic", "write")]).toEqual([true, true]);
    expect([exchange("amq.topic", "configure"), exchange("amq.default", "write")]).toEqual([false, false]);
  });
});

describe("a routing key of RabbitMQ", () => {
  it.each([
    [agent, "write", "agent.a.data"],
    [agent, "write", "agent.a.result"],
    [agent, "read", "agent.a.command"],
    [service, "read", "agent.*.data"],
    [service, "read", "agent.#"],
    [service, "write", "agent.a.command"],
    [service, "read", "event.bridge.*"],
    [controller, "write", "event.me@example.co.1"],
    [user, "read", "event.me@example.co.1"],
    [user, "read", "event.me@example.co.*"],
  ])("may be used by %j to %s: %s", (client, permission, key) => {
    expect(mayUseRoutingKey(client, permission, key)).toBe(true);
  });

  it.each([
    [agent, "write", "agent.b.data"],
    [agent, "write", "agent.a.command"],
    [agent, "write", "agent.a.b.data"],
    [{ kind: "agent", name: "a.b" } as const, "write", "agent.a.b.data"],
    [agent, "read", "agent.*.command"],
    [agent, "read", "#"],
    [agent, "read", "event.a.1"],
    [service, "read", "#"],
    [service, "read", "#.data"],
    [service, "read", "*.me@example.co.1"],
    [service, "read", "event"],
    [service, "read", "$share.bridge.agent.*.data"],
    [service, "read", "$SYS.#"],
    [service, "read", "event.me@example.co.1"],
    [service, "read", "event.bridge.#"],
    [service, "write", "event.me@example.co.1"],
    [service, "write", "$SYS.x"],
    [user, "write", "agent.a.data"],
    [user, "read", "agent.a.data"],
    [user, "read", "event.me@example.co.#"],
    [user, "read", "event.me@example.co.uk.1"],
    [user, "read", "event.me@example.co.uk.*"],
    [user, "configure", "event.me@example.co.1"],
  ])("must not be used by %j to %s: %s", (client, permission, key) => {
    expect(mayUseRoutingKey(client, permission, key)).toBe(false);
  });
});
