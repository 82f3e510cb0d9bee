/** Letters that Unicode normalization does not decompose into a basic letter and a mark. */
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

const ASCII = /^[ -~]*$/;

/**
 * Returns the key that the gazetteer stores for a name: lower case, without diacritics, apostrophes and full stops, with single spaces.
 * "Zürich" becomes "zurich", "St. John’s" "st johns", "Saint-Denis" "saint denis". A change here requires a new load of the gazetteer.
 */
export const normalizePlaceName = (name: string): string =>
  // Most names are ASCII and need no decomposition.
  (ASCII.test(name) ? name : name.normalize("NFKD"))
    .toLowerCase()
    .replace(/[\p{M}\p{Cf}.'’‘ʻʼ`´]+/gu, "")
    .replace(/[ßæœøđðłħıþ]/g, (letter) => FOLDED[letter] ?? letter)
    .replace(/[\p{Pd}\p{Z}\p{Cc},_/()]+/gu, " ")
    .trim();
