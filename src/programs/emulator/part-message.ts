import * as z from "zod";
import { TECHNOLOGIES } from "../../emulator/models/access-point.ts";

/** One part of an emulation job, as the controller publishes it. Each emulator runs the parts that it claims. */
export const PartMessage = z.object({
  job_number: z.string().regex(/^[A-Za-z0-9-]{1,64}$/),
  part: z.int().gt(0),
  parts: z.int().gt(0),
  emulators: z.array(
    z.object({
      access_point_type: z.enum(TECHNOLOGIES),
      num_devices: z.int().gt(0),
      duration: z.int().gt(0),
      agents: z.array(
        z.object({
          ap_id: z.string(),
          password: z.string(),
          latitude: z.number(),
          longitude: z.number(),
          /** Absent in messages of older controllers, which give all access points of a site the same coordinates. */
          site: z.string().optional(),
        }),
      ),
    }),
  ),
});
export type PartMessage = z.output<typeof PartMessage>;

/** Returns undefined if the payload is not a part of a job. */
export function readPart(payload: Buffer): PartMessage | undefined {
  try {
    return PartMessage.parse(JSON.parse(payload.toString()));
  } catch {
    return undefined;
  }
}
