import { useEffect, useState } from "preact/hooks";
import type { PlaceSuggestion } from "../../../schemas/emulator.ts";
import { findPlaces } from "../../api/operations.ts";

const TYPING_PAUSE_MS = 200;
const MIN_TEXT_LENGTH = 2;
const MAX_SUGGESTIONS = 8;
const NONE: readonly PlaceSuggestion[] = [];

/** Returns the places that match a text, after a pause in typing. */
export function usePlaceSuggestions(text: string): readonly PlaceSuggestion[] {
  const [suggestions, setSuggestions] = useState(NONE);
  useEffect(() => {
    if (text.length < MIN_TEXT_LENGTH) return setSuggestions(NONE);
    const aborter = new AbortController();
    const timer = setTimeout(() => {
      findPlaces(text, aborter.signal).then(
        (found) => setSuggestions(found.slice(0, MAX_SUGGESTIONS)),
        // Suggestions are optional: the form accepts any text without them.
        () => setSuggestions(NONE),
      );
    }, TYPING_PAUSE_MS);
    return () => {
      clearTimeout(timer);
      aborter.abort();
    };
  }, [text]);
  return suggestions;
}
