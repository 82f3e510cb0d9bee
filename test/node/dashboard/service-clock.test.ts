import { describe, expect, it } from "vitest";
import { correctedOffsetMs } from "../../../src/dashboard/api/clock.ts";

const NOON_MS = Date.UTC(2026, 0, 1, 12);
const TEN_MINUTES_MS = 600_000;

describe("correctedOffsetMs", () => {
  it("keeps the offset while responses agree with it", () => {
    // Sent at 12:00:00.900, received at 12:00:01.050; the service's time is 12:00:00 or 12:00:01.
    for (const second of [0, 1_000])
      expect(correctedOffsetMs(0, NOON_MS + second, NOON_MS + 900, NOON_MS + 1_050)).toBe(0);
  });

  it.each([-TEN_MINUTES_MS, TEN_MINUTES_MS])(
    "finds the offset to within a second if the browser's clock is off by %d ms",
    (offMs) => {
      const [sentMs, receivedMs] = [NOON_MS + offMs + 300, NOON_MS + offMs + 400];
      const offsetMs = correctedOffsetMs(0, NOON_MS, sentMs, receivedMs);
      expect(Math.abs(offsetMs + offMs)).toBeLessThan(1_000);
      // Later responses do not change the offset, at whatever fraction of a second they arrive.
      expect(correctedOffsetMs(offsetMs, NOON_MS + 5_000, sentMs + 5_000, receivedMs + 5_000)).toBe(offsetMs);
    },
  );

  it("ignores a response that took long, and an invalid date", () => {
    expect(correctedOffsetMs(0, NOON_MS, NOON_MS, NOON_MS + TEN_MINUTES_MS)).toBe(0);
    expect(correctedOffsetMs(5, Date.parse("nonsense"), NOON_MS, NOON_MS)).toBe(5);
  });
});
