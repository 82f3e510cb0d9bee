import type { ComponentChildren } from "preact";
import type { Severity } from "../../../schemas/events.ts";
import { SEVERITY_TEXTS } from "./event-text.ts";

/** A text with a mark in the shape and colour of a severity. */
export function SeverityMark({ severity, children }: { severity: Severity; children?: ComponentChildren }) {
  return (
    <span class={`severity ${severity}`}>
      {children === undefined ? (
        SEVERITY_TEXTS[severity]
      ) : (
        <>
          {severity !== "info" && <span class="hidden-text">{SEVERITY_TEXTS[severity]}: </span>}
          {children}
        </>
      )}
    </span>
  );
}
