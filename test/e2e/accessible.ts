import type { Page } from "playwright-core";
import { expect } from "vitest";
import { accessibilityViolations } from "../../scripts/harness/browser.ts";

/** Expects no serious accessibility violation: all rules in light mode, and in dark mode the contrast, which alone differs. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.emulateMedia({ colorScheme: "light" });
  expect(await accessibilityViolations(page), "light").toEqual([]);
  await page.emulateMedia({ colorScheme: "dark" });
  expect(await accessibilityViolations(page, ["color-contrast"]), "dark").toEqual([]);
}
