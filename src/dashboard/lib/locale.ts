/** The language in which the page writes dates and numbers. */

const FALLBACK = "en-US";

/**
 * Returns a language tag that `Intl` accepts. Browsers may report others: Chromium says `en-US@posix` if LANG is C.UTF-8, and an
 * empty language is possible, too.
 */
export function validLocale(language: string | undefined): string {
  // What a POSIX locale adds to the language, such as the encoding, is no part of a tag.
  const withoutPosixParts = language?.replace(/[.@].*$/, "").replaceAll("_", "-");
  return canonical(language) ?? canonical(withoutPosixParts) ?? FALLBACK;
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
 * Gives the browser a valid language if its own is not. uPlot passes it to `Intl` when it is imported, and an invalid one would keep
 * the whole page from loading. Setting it here needs no change of uPlot's source, and serves every other library as well.
 */
export function correctLanguage(browser: { readonly language: string }): void {
  if (canonical(browser.language) !== undefined) return;
  // Unlike `Object.defineProperty` it does not throw if an extension has fixed the property.
  Reflect.defineProperty(browser, "language", { value: validLocale(browser.language), configurable: true });
}
