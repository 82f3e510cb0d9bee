import type { ThirdPartyApp, ThirdPartyAppCreate, ThirdPartyAppUpdate } from "../../schemas/accounts/app.ts";
import type { AuditEntry } from "../../schemas/accounts/audit.ts";
import type { TokenData, UserCreate, UserRegister, UserUpdate } from "../../schemas/accounts/user.ts";
import type { Agent, AgentCreate, AgentUpdate } from "../../schemas/agent.ts";
import type { EmulatorSpinupRequest, PlaceSuggestion, SpinupQueued } from "../../schemas/emulator.ts";
import type { DownloadQuery } from "../../schemas/exports.ts";
import type { Overview } from "../../schemas/fleet/overview.ts";
import type { JobKind, JobRecord, JobState, JobStatus, Queued } from "../../schemas/job.ts";
import type { AgentMetrics, MultiMetricData } from "../../schemas/metrics.ts";
import type { Ack } from "../../schemas/primitives.ts";
import type { DashboardSettings } from "../../schemas/service.ts";
import { call, callForFile, pathTo, type ReceivedFile, V1 } from "./call.ts";

/** The API operations that the page uses, typed by the schemas that the service validates with. */

export const settings = (): Promise<DashboardSettings> => call("GET", "/dashboard.json", { isAnonymous: true });

// The signed-in user's account.

export const me = (signal?: AbortSignal): Promise<TokenData> => call("GET", `${V1}/users/me`, { signal });
export const signUp = (body: UserRegister): Promise<TokenData> =>
  call("POST", `${V1}/users/signup`, { body, isAnonymous: true });
export const recoverPassword = (username: string): Promise<Ack> =>
  call("POST", `${V1}/users/password-recovery`, { body: { username }, isAnonymous: true });
export const resetPassword = (token: string, new_password: string): Promise<Ack> =>
  call("POST", `${V1}/users/reset-password`, { body: { token, new_password }, isAnonymous: true });

// Access points.

/** Returns the access points that a selector selects; an empty one selects all. */
export const overview = (selector: string, signal?: AbortSignal): Promise<Overview> =>
  call("GET", `${V1}/overview`, { query: { selector: selector === "" ? undefined : selector }, signal });
export const readAgent = (apId: string, signal?: AbortSignal): Promise<Agent> =>
  call("GET", pathTo("agents", apId), { signal });
export const agentMetrics = (agent: string, window: string, signal?: AbortSignal): Promise<AgentMetrics> =>
  call("GET", `${V1}/metrics/agent_metrics`, { query: { agent, window }, signal });

export interface SeriesRequest {
  agent: string;
  metrics: readonly string[];
  window: string;
  /** Limits the response to newer points. */
  since?: string | undefined;
  /** Requests the sources of the access point's samples, too. */
  sources?: "true";
}
export const series = (request: SeriesRequest, signal?: AbortSignal) =>
  call<MultiMetricData>("GET", `${V1}/metrics/agent_multi_metric_data`, { query: { ...request }, signal });

export interface DownloadRequest {
  /** One access point. Otherwise, those of the selector. */
  agent?: string;
  selector?: string | undefined;
  metrics: readonly string[];
  start_time: string;
  end_time: string;
  format: DownloadQuery["format"];
}
export const downloadPoints = (request: DownloadRequest): Promise<ReceivedFile> =>
  callForFile(`${V1}/metrics/download`, { ...request });

export const sendCommand = (agent_id: string, command: string): Promise<Queued> =>
  call("POST", `${V1}/send_command`, { query: { agent_id, command } });

// Emulated access points.

export const spinUp = (body: EmulatorSpinupRequest): Promise<SpinupQueued> =>
  call("POST", `${V1}/emulator/spinup`, { body });
export const runningEmulators = (signal?: AbortSignal): Promise<JobRecord[]> =>
  call("GET", `${V1}/emulator/`, { signal });
export const removeEmulator = (jobNumber: string): Promise<Ack> => call("DELETE", pathTo("emulator", jobNumber));
export const findPlaces = (text: string, signal?: AbortSignal): Promise<PlaceSuggestion[]> =>
  call("GET", `${V1}/places`, { query: { text }, signal });

// Jobs.

export interface JobsFilter {
  kind?: JobKind | undefined;
  state?: JobState | undefined;
  limit?: number;
  offset?: number;
}
export const listJobs = ({ kind, state, limit, offset }: JobsFilter, signal?: AbortSignal): Promise<JobRecord[]> =>
  call("GET", `${V1}/jobs/`, { query: { kind, state, limit, offset }, signal });
export const readJob = (jobNumber: string, signal?: AbortSignal): Promise<JobStatus> =>
  call("GET", pathTo("jobs", jobNumber), { signal });
export const cancelJob = (jobNumber: string): Promise<Ack> => call("DELETE", pathTo("jobs", jobNumber));
export const requestData = (agent_id: string, start_time: string, end_time: string): Promise<Queued> =>
  call("POST", `${V1}/agent_data/request_agent_data`, { query: { agent_id, start_time, end_time } });

// Administration.

export const listUsers = (signal?: AbortSignal): Promise<TokenData[]> => call("GET", `${V1}/users/`, { signal });
export const createUser = (body: UserCreate): Promise<TokenData> => call("POST", `${V1}/users/`, { body });
export const updateUser = (username: string, body: UserUpdate): Promise<TokenData> =>
  call("PUT", pathTo("users", username), { body });
export const deleteUser = (username: string): Promise<Ack> => call("DELETE", pathTo("users", username));

export const createAgent = (body: AgentCreate): Promise<Agent> => call("POST", `${V1}/agents/`, { body });
export const updateAgent = (apId: string, body: AgentUpdate): Promise<Agent> =>
  call("PUT", pathTo("agents", apId), { body });
export const deleteAgent = (apId: string): Promise<Ack> => call("DELETE", pathTo("agents", apId));

export const listApps = (signal?: AbortSignal): Promise<ThirdPartyApp[]> =>
  call("GET", `${V1}/third_party_apps/`, { signal });
export const createApp = (body: ThirdPartyAppCreate): Promise<ThirdPartyApp> =>
  call("POST", `${V1}/third_party_apps/`, { body });
export const updateApp = (name: string, body: ThirdPartyAppUpdate): Promise<ThirdPartyApp> =>
  call("PUT", pathTo("third_party_apps", name), { body });
export const deleteApp = (name: string): Promise<Ack> => call("DELETE", pathTo("third_party_apps", name));

export interface AuditFilter {
  actor?: string | undefined;
  object?: string | undefined;
  before?: number | undefined;
  limit?: number;
}
export const auditTrail = (filter: AuditFilter, signal?: AbortSignal): Promise<AuditEntry[]> =>
  call("GET", `${V1}/audit/`, { query: { ...filter }, signal });
