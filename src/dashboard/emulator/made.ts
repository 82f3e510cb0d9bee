import type { SpinupQueued } from "../../schemas/emulator.ts";
import { observable } from "../observable.ts";

/** What was started last from this page, and for how long. */
export interface Made extends SpinupQueued {
  durationS: number;
}

/** Still there for whoever looks at another page in between. */
export const lastMade = observable<Made | undefined>(undefined);
