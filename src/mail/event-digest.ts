import { html } from "hono/html";
import type { Message } from "./mailer.ts";

/** One event of a message. */
export interface EventLine {
  time: string;
  severity: string;
  type: string;
  /** The agent or the account. */
  about: string;
  text: string;
}

/** Longer bursts end with the number of the other events. */
const MAX_LINES = 50;
const MAX_TEXT = 200;

export function eventDigestMessage(to: string, name: string, events: readonly EventLine[]): Message {
  const [first] = events;
  const subject =
    events.length === 1 && first !== undefined
      ? oneLine(`${first.severity}: ${first.type} ${first.about}`)
      : oneLine(`${events.length} events: ${name}`);
  const lines = events
    .slice(0, MAX_LINES)
    .map(({ time, severity, type, about, text }) =>
      oneLine([time, severity, type, about, text].filter((part) => part !== "").join("  ")),
    );
  const rest = events.length - lines.length;
  const more = rest > 0 ? [`… and ${rest.toLocaleString("en-US")} more`] : [];
  const outro = `You receive this because of the subscription “${oneLine(name)}” at the Multi-Access Network Controller.`;
  return {
    to,
    subject,
    text: [[...lines, ...more].join("\n"), outro].join("\n\n"),
    html: String(html`<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>${subject}</title></head>
  <body style="margin:0;padding:24px;color:#1b232d;font:16px/1.5 system-ui,sans-serif">
    <ul>${[...lines, ...more].map((line) => html`<li>${line}</li>`)}</ul>
    <p style="font-size:14px;color:#566373">${outro}</p>
  </body>
</html>`),
  };
}

/** Removes line breaks, which would end a header, and shortens the text. */
const oneLine = (text: string): string => text.replaceAll(/[\r\n\t\0]+/g, " ").slice(0, MAX_TEXT);
