import { signal } from "@preact/signals";
import type { SpinupQueued } from "../../../schemas/emulator.ts";
import { session } from "../../app/session.ts";

/** What was started last from this page, and for how long. */
export interface Made extends SpinupQueued {
  durationS: number;
}

/** Still there for whoever looks at another page in between, though not for whoever signs in next. */
export const lastSpinUp = signal<Made | undefined>(undefined);

session.subscribe(() => {
  if (session.value === undefined) lastSpinUp.value = undefined;
});
