import { connectAsync } from "mqtt";
import { UserError } from "../../../src/programs/shared/cli.ts";
import { unlessAborted } from "../../../src/programs/shared/interruption.ts";
import type { Api } from "../api.ts";
import type { Queued } from "../job-socket.ts";
import type { Callers } from "./account-steps.ts";
import type { Made } from "./cleanup.ts";
import { openReader } from "./reader.ts";
import { eventually, expectEqual } from "./steps.ts";

/** What goes over MQTT: by the broker, which knows the agent by its token, and the bridge. */

const CONNECT_MS = 15_000;
/** Well beyond all that is waited for in here. */
const OVER_MS = 120_000;
const BRIDGE_S = 30;
const COMMAND = "smoke";

/** The agent hears a command and answers it, and reports something; both get to who asked. */
export async function obeysOverMqtt(api: Api, made: Made, { user, agent, apId }: Callers, url: string): Promise<void> {
  const client = await connectAsync(url, {
    username: apId,
    password: agent,
    reconnectPeriod: 0,
    connectTimeout: CONNECT_MS,
  }).catch((error: Error) => {
    throw new UserError(`The broker does not let the agent in: ${error.message}`);
  });
  // It says so, and the answer is missed then.
  client.on("error", () => {});
  // Once the connection is gone, the client never tells what became of what was on its way.
  const lost = new AbortController();
  client.once("close", () => lost.abort(new UserError("The broker closed the agent's connection")));
  const signal = AbortSignal.any([api.signal, lost.signal, AbortSignal.timeout(OVER_MS)]);
  try {
    const result = { status: "done", data: { heard: COMMAND } };
    client.on("message", (_topic, payload) => {
      const { job_number } = JSON.parse(payload.toString()) as { job_number: string };
      client.publish(`agent/${apId}/result`, JSON.stringify({ job_number, ...result }), { qos: 1 });
    });
    await unlessAborted(client.subscribeAsync(`agent/${apId}/command`, { qos: 1 }), signal);
    const path = `/api/v1/send_command?agent_id=${apId}&command=${COMMAND}`;
    const { job_number: job } = await api.call<Queued>("POST", path, user);
    made.note(`/api/v1/jobs/${job}`);
    const reader = await openReader(api, user, job);
    try {
      const { type, final, data } = await unlessAborted(reader.next(), signal);
      expectEqual("The answer to the command", { type, final, data }, { type: "command", final: true, data: [result] });
    } finally {
      reader.close();
    }
    const { state } = await api.call<{ state: string }>("GET", `/api/v1/jobs/${job}`, user);
    expectEqual("The state of the command's job", state, "done");

    const message = JSON.stringify({ over_mqtt: 7 });
    await unlessAborted(client.publishAsync(`agent/${apId}/data`, message, { qos: 1 }), signal);
    await eventually("What the agent published to come through the bridge", BRIDGE_S, async () => {
      const metrics = `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=over_mqtt`;
      const { series } = await api.call<{ series: { points: { value: number }[] }[] }>("GET", metrics, user);
      return series[0]?.points[0]?.value === 7 || undefined;
    });
  } finally {
    client.end(true);
  }
}
