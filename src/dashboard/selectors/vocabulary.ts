import { signal } from "@preact/signals";
import { listGroups, listLabels } from "../api/fleet-calls.ts";
import { session } from "../app/session.ts";
import type { Vocabulary } from "./completion.ts";

/** The labels and groups that all selector fields of the page suggest. */

const NONE: Vocabulary = { labels: [], groups: [] };
/** A field that gets the focus loads the vocabulary again after this time. */
const MAX_AGE_MS = 30_000;

export const vocabulary = signal<Vocabulary>(NONE);

let loadedFor: string | undefined;
let loadedAtMs = Number.NEGATIVE_INFINITY;

/** Loads the vocabulary, unless it is recent. Suggestions are optional: fields work without them, so errors are not shown. */
export async function refreshVocabulary(): Promise<void> {
  const username = session.value?.username;
  if (loadedFor !== username) {
    vocabulary.value = NONE;
    loadedFor = username;
    loadedAtMs = Number.NEGATIVE_INFINITY;
  }
  if (Date.now() - loadedAtMs < MAX_AGE_MS) return;
  loadedAtMs = Date.now();
  try {
    const [labels, groups] = await Promise.all([listLabels(), listGroups()]);
    if (session.value?.username === username) vocabulary.value = { labels, groups };
  } catch {
    loadedAtMs = Number.NEGATIVE_INFINITY;
  }
}

/** Makes the next field load the vocabulary: labels or groups were changed. */
export function expireVocabulary(): void {
  loadedAtMs = Number.NEGATIVE_INFINITY;
}
