import { describe, expect, it } from "vitest";
import { correctLanguage, validLocale } from "../../../src/dashboard/lib/locale.ts";

describe("the locale of the page", () => {
  it.each<[string | undefined, string]>([
    ["de-DE", "de-DE"],
    ["EN-us", "en-US"],
    ["en-US@posix", "en-US"],
    ["de_DE.UTF-8", "de-DE"],
    ["", "en-US"],
    ["x", "en-US"],
    ["C", "en-US"],
    ["not a tag", "en-US"],
    [undefined, "en-US"],
  ])("for a browser with the language %j is %s", (language, expected) => {
    const locale = validLocale(language);
    expect(locale).toBe(expected);
    expect(() => new Intl.NumberFormat(locale)).not.toThrow();
  });

  it("replaces an invalid language of the browser and keeps a valid one", () => {
    const browser = Object.create({
      get language() {
        return "en-US@posix";
      },
    }) as { language: string };
    correctLanguage(browser);
    expect(browser.language).toBe("en-US");
    const german = { language: "de-de" };
    correctLanguage(german);
    expect(german).toEqual({ language: "de-de" });
  });

  it("does not fail if the browser's language cannot be replaced", () => {
    const browser = Object.freeze({ language: "" });
    expect(() => correctLanguage(browser)).not.toThrow();
  });
});
