import { describe, expect, it } from "vitest";
import { correctedMs } from "../../../src/dashboard/api/clock.ts";

const NOON_MS = Date.UTC(2026, 0, 1, 12);
const TEN_MINUTES_MS = 600_000;

describe("the service's clock, as the page takes it", () => {
  it("is the page's own while answers go with that", () => {
    // Asked at 12:00:00.900, answered at 12:00:01.050; the service says 12:00:00 or 12:00:01.
    for (const second of [0, 1_000]) expect(correctedMs(0, NOON_MS + second, NOON_MS + 900, NOON_MS + 1_050)).toBe(0);
  });

  it.each([-TEN_MINUTES_MS, TEN_MINUTES_MS])(
    "is found to within a second where the page's is off by %d ms",
    (offMs) => {
      const [askedMs, nowMs] = [NOON_MS + offMs + 300, NOON_MS + offMs + 400];
      const aheadMs = correctedMs(0, NOON_MS, askedMs, nowMs);
      expect(Math.abs(aheadMs + offMs)).toBeLessThan(1_000);
      // Once found it stays, whatever part of a second later answers come at.
      expect(correctedMs(aheadMs, NOON_MS + 5_000, askedMs + 5_000, nowMs + 5_000)).toBe(aheadMs);
    },
  );

  it("does not follow an answer that was long on its way, or that says nothing", () => {
    expect(correctedMs(0, NOON_MS, NOON_MS, NOON_MS + TEN_MINUTES_MS)).toBe(0);
    expect(correctedMs(5, Date.parse("nonsense"), NOON_MS, NOON_MS)).toBe(5);
  });
});
