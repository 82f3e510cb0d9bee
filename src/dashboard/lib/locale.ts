/** The locale of the page's dates and times. */

const FALLBACK = "en-US";

/**
 * Returns a language tag that `Intl` accepts. Browsers may report invalid ones: Chromium reports `en-US@posix` if LANG is C.UTF-8,
 * and the language may be empty.
 */
export function validLocale(language: string | undefined): string {
  // A POSIX locale may append an encoding or a modifier, which are not allowed in a language tag.
  const withoutSuffix = language?.replace(/[.@].*$/, "").replaceAll("_", "-");
  return canonical(language) ?? canonical(withoutSuffix) ?? FALLBACK;
}

function canonical(language: string | undefined): string | undefined {
  try {
    return Intl.getCanonicalLocales(language)[0];
  } catch {
    return undefined;
  }
}

export const locale = validLocale(navigator.language);

/**
 * Replaces an invalid `navigator.language`. uPlot passes it to `Intl` when it is imported, so an invalid value would keep the
 * whole page from loading. Replacing the value needs no patch of uPlot, and helps every other library.
 */
export function correctLanguage(browser: { readonly language: string }): void {
  if (canonical(browser.language) !== undefined) return;
  // Unlike `Object.defineProperty`, this does not throw if an extension has frozen the property.
  Reflect.defineProperty(browser, "language", { value: validLocale(browser.language), configurable: true });
}
