import { describe, expect, it } from "vitest";
import { createGazetteer } from "../../../src/geo/gazetteer-store.ts";
import { geocode } from "../../../src/geo/geocode.ts";
import { Unavailable } from "../../../src/lib/errors.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { settings } from "../support.ts";

describe("a gazetteer that is still being loaded", () => {
  const gazetteer = createGazetteer(createDatabase({ url: settings.EMPTY_LIBSQL_URL ?? "" }));

  it("is unavailable for names, which it could resolve to the wrong town", async () => {
    await expect(geocode(["Bristol"], gazetteer)).rejects.toBeInstanceOf(Unavailable);
    await expect(gazetteer.findByPrefix({ key: "bris" }, 8)).rejects.toBeInstanceOf(Unavailable);
  });

  it("is not needed for coordinates", async () => {
    expect(await geocode(["51.4545,-2.5879"], gazetteer)).toEqual([{ latitude: 51.4545, longitude: -2.5879 }]);
  });
});
