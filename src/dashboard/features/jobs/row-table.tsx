import { timeText } from "../../components/time.tsx";
import { countOf, own } from "../../lib/format.ts";
import type { Item } from "./received-messages.ts";
import { fieldsOf, type Row } from "./row-store.ts";

const MAX_COLUMNS = 8;
const MAX_TEXT_LENGTH = 200;
const MAX_LINE_LENGTH = 48;

/** Shows the last rows, the newest first. */
export function RowTable({ rows, total }: { rows: readonly Row[]; total: number }) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(fieldsOf(row))))].slice(0, MAX_COLUMNS);
  const newestFirst = rows.map((row, i) => ({ number: total - rows.length + i + 1, fields: fieldsOf(row) })).reverse();
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling section must be reachable with the keyboard.
    <section class="table rows" tabIndex={0} aria-label="Last rows">
      <table>
        <caption>
          {total > rows.length ? `Last ${rows.length} of ${countOf(total, "row")}` : countOf(total, "row")}
        </caption>
        <thead>
          <tr>
            {columns.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {newestFirst.map(({ number, fields }) => (
            <tr key={number}>
              {columns.map((name) => (
                <Cell key={name} text={cellText(own(fields, name))} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const Cell = ({ text }: { text: string }) => <td class={text.length > MAX_LINE_LENGTH ? "long" : undefined}>{text}</td>;

/** Shows reports of emulators and results of commands as cards, the newest first. */
export function ItemCards({ items }: { items: readonly Item[] }) {
  return (
    <ul class="items">
      {items.toReversed().map(({ id, type, ts, data }) => (
        <li key={id} class="card">
          <p class="spread">
            <strong>{TITLES[type]}</strong>
            <time class="soft" dateTime={ts}>
              {timeText(ts)}
            </time>
          </p>
          <dl class="facts">
            {flatFields(data).map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{cellText(value)}</dd>
              </div>
            ))}
          </dl>
        </li>
      ))}
    </ul>
  );
}

const TITLES: Record<Item["type"], string> = { command: "Result", emulator: "Emulator" };

/** Returns the fields, with those of nested objects in place of the objects: results are usually one level deeper. */
const flatFields = (data: Row): [string, unknown][] =>
  Object.entries(fieldsOf(data)).flatMap(([name, value]) =>
    typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value) : [[name, value]],
  );

function cellText(value: unknown): string {
  const text = typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
  return text.length > MAX_TEXT_LENGTH ? `${text.slice(0, MAX_TEXT_LENGTH)}…` : text;
}
