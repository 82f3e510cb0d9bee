import { useEffect, useState } from "preact/hooks";
import type { PlaceSuggestion } from "../../../schemas/emulator.ts";
import { findPlaces } from "../../api/operations.ts";

const TYPING_PAUSE_MS = 200;
const SHORTEST_TEXT = 2;
const MAX_PLACES = 8;
const NONE: readonly PlaceSuggestion[] = [];

/** The places that this text may mean, a moment after it was typed. */
export function usePlaces(text: string): readonly PlaceSuggestion[] {
  const [places, setPlaces] = useState(NONE);
  useEffect(() => {
    if (text.length < SHORTEST_TEXT) return setPlaces(NONE);
    const ending = new AbortController();
    const waiting = setTimeout(() => {
      findPlaces(text, ending.signal).then(
        (found) => setPlaces(found.slice(0, MAX_PLACES)),
        // To complete is a convenience: whatever was typed can be sent all the same.
        () => setPlaces(NONE),
      );
    }, TYPING_PAUSE_MS);
    return () => {
      clearTimeout(waiting);
      ending.abort();
    };
  }, [text]);
  return places;
}
