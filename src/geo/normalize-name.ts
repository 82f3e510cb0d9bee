/** Letters that do not come apart into one of the alphabet and a mark. */
const FOLDED: Record<string, string> = {
  ß: "ss",
  æ: "ae",
  œ: "oe",
  ø: "o",
  đ: "d",
  ð: "d",
  ł: "l",
  ħ: "h",
  ı: "i",
  þ: "th",
};

const PLAIN = /^[ -~]*$/;

/**
 * What a place is looked up by: a name in lower case, without marks, apostrophes and full stops, with single blanks between
 * its words. "Zürich" is "zurich", "St. John’s" is "st johns", "Saint-Denis" is "saint denis".
 */
export const normalizePlaceName = (name: string): string =>
  // Most names have nothing to take apart.
  (PLAIN.test(name) ? name : name.normalize("NFKD"))
    .toLowerCase()
    .replace(/[\p{M}\p{Cf}.'’‘ʻʼ`´]+/gu, "")
    .replace(/[ßæœøđðłħıþ]/g, (letter) => FOLDED[letter] ?? letter)
    .replace(/[\p{Pd}\p{Z}\p{Cc},_/()]+/gu, " ")
    .trim();
