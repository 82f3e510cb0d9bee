import type { RateLimiter } from "../accounts/login/rate-limiter.ts";
import type { Encryptor } from "../auth/encryptor.ts";
import type { Actor } from "../auth/identity.ts";
import { authorize, authorizeJob, canAccessAny } from "../auth/permissions.ts";
import { randomSecret, type SecretHasher } from "../auth/secrets.ts";
import type { Outbox } from "../broker/outbox.ts";
import { SPINUP_TOPIC } from "../broker/topics.ts";
import type { Location } from "../geo/geocode.ts";
import type { PlaceNames } from "../geo/suggest.ts";
import { type JobStore, ownerOf } from "../jobs/job-store.ts";
import { toRecord } from "../jobs/jobs.ts";
import type { StreamClient } from "../jobs/stream/stream-client.ts";
import { Invalid, NotAllowed, NotFound, type ValidationItem } from "../lib/errors.ts";
import type { EmulatorSpinupRequest, PlaceSuggestion, PlacesQuery, SpinupQueued } from "../schemas/emulator.ts";
import { type JobRecord, queued } from "../schemas/job.ts";
import { type Ack, ack } from "../schemas/primitives.ts";
import { CLAIM_WINDOW_MS, type EmulationStore, latestEndMs } from "./emulation-store.ts";
import { planSpinup } from "./plan.ts";
import { removeAllAgents } from "./retention.ts";
import type { SpinupStore } from "./spinup-store.ts";

/** Creates, lists and removes emulated access points. */
export interface Emulators {
  spinUp(actor: Actor, request: EmulatorSpinupRequest): Promise<SpinupQueued>;
  /** Returns towns whose names begin with a text. */
  places(actor: Actor, query: PlacesQuery): Promise<PlaceSuggestion[]>;
  /** Returns the running and queued emulator jobs. */
  list(actor: Actor): Promise<JobRecord[]>;
  /** Stops a job and removes its agents. */
  remove(actor: Actor, jobNumber: string): Promise<Ack>;
}

export interface EmulatorsOptions {
  store: SpinupStore;
  emulations: EmulationStore;
  jobStore: JobStore;
  streams: StreamClient;
  outbox: Pick<Outbox, "withdraw">;
  rateLimiter: RateLimiter;
  gazetteer: PlaceNames;
  secretHasher: SecretHasher;
  encryptor: Encryptor;
  /** Tells the publisher that the outbox has new messages. Does not throw. */
  wakePublisher(): Promise<void>;
  now?: () => number;
}

/** Loaded on demand to keep cold starts short: few requests name places. */
const loadPlaces = () => import("../geo/places.ts");

const MAX_SPINUPS_PER_MINUTE = 30;
const MAX_LISTED = 1_000;

export function createEmulators(options: EmulatorsOptions): Emulators {
  const {
    store,
    emulations,
    jobStore,
    streams,
    outbox,
    rateLimiter,
    gazetteer,
    secretHasher,
    encryptor,
    wakePublisher,
    now = Date.now,
  } = options;

  /** Returns the position of each location. Throws `Invalid` with a field error for each unknown location. */
  const locate = async ({ emulators }: EmulatorSpinupRequest): Promise<Map<string, Location>> => {
    const texts = [...new Set(emulators.flatMap((spec) => spec.locations))];
    const { geocode } = await loadPlaces();
    const resolutions = await geocode(texts, gazetteer);
    const outcomes = new Map(texts.map((text, i) => [text, resolutions[i]]));
    const positions = new Map<string, Location>();
    const errors: ValidationItem[] = [];
    for (const [i, { locations }] of emulators.entries()) {
      for (const [j, text] of locations.entries()) {
        const outcome = outcomes.get(text) ?? { reason: "not a location" };
        if ("latitude" in outcome) positions.set(text, outcome);
        else {
          const loc = ["emulators", i, "locations", j];
          errors.push({ loc, msg: `Value error, ${outcome.reason}`, type: "value_error" });
        }
      }
    }
    if (errors.length > 0) throw new Invalid(errors);
    return positions;
  };

  return {
    async spinUp(actor, request) {
      authorize(actor, "emulator.spin_up");
      // A caller that is limited to some agents must not create others.
      if (actor.apIds !== undefined) throw new NotAllowed();
      const positions = await locate(request);
      await rateLimiter.take(`spinup:${actor.id}`, MAX_SPINUPS_PER_MINUTE);
      const jobNumber = crypto.randomUUID();
      const plan = planSpinup(request, jobNumber, positions);
      const withSecrets = await Promise.all(
        plan.agents.map(async (agent) => {
          const password = randomSecret();
          return { ...agent, password, credential: await secretHasher.hash(password) };
        }),
      );
      const passwords = new Map(withSecrets.map(({ apId, password }) => [apId, password]));
      const messages = await Promise.all(
        plan
          .messages((apId) => passwords.get(apId) ?? "")
          .map(async (message) => ({
            jobNumber,
            part: message.part,
            topic: SPINUP_TOPIC,
            // Credentials must not be stored unencrypted.
            payload: await encryptor.seal(JSON.stringify(message), jobNumber),
          })),
      );
      const createdMs = now();
      await store.insert(
        {
          ...ownerOf(actor),
          jobNumber,
          detail: plan.detail,
          agents: withSecrets,
          messages,
          createdMs,
          expiresMs: createdMs + CLAIM_WINDOW_MS,
          endsMs: latestEndMs(createdMs, Math.max(...request.emulators.map(({ duration }) => duration))),
        },
        actor,
      );
      await wakePublisher();
      return {
        ...queued(jobNumber),
        agents: plan.agents.length,
        ap_ids: plan.agents.map(({ apId }) => apId),
        locations: [...positions].map(([location, position]) => ({ location, ...position })),
      };
    },

    async places(actor, { text, limit }) {
      authorize(actor, "emulator.places");
      const { suggestPlaces } = await loadPlaces();
      return await suggestPlaces(text, limit, gazetteer);
    },

    async list(actor) {
      authorize(actor, "emulator.list");
      const ownerId = canAccessAny(actor, "emulator.list") ? undefined : actor.id;
      const page = { ownerId, kind: "emulator", limit: MAX_LISTED, offset: 0 } as const;
      const rows = await Promise.all([
        jobStore.list({ ...page, state: "running" }),
        jobStore.list({ ...page, state: "queued" }),
      ]);
      return rows.flat().map(toRecord);
    },

    async remove(actor, jobNumber) {
      authorize(actor, "emulator.remove");
      const [emulation, job] = await Promise.all([emulations.find(jobNumber), jobStore.find(jobNumber)]);
      const owned = emulation ?? (job?.kind === "emulator" ? job : undefined);
      if (owned === undefined) throw new NotFound("Job");
      authorizeJob(actor, "emulator.remove", { ownerId: owned.ownerId, target: null });
      // Close the stream first, so that the emulator stops. A call to the stream of a deleted job would create it again.
      if (job !== undefined) await streams.close(jobNumber, "cancelled");
      await outbox.withdraw(jobNumber);
      const removed = await removeAllAgents(emulations, owned, actor);
      await jobStore.update(jobNumber, { state: "cancelled", detail: "Removed" }, actor);
      return ack(`${removed} agents removed`);
    },
  };
}
