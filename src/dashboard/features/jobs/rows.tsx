import { timeText } from "../../components/time.tsx";
import { countOf } from "../../lib/format.ts";
import { own } from "../../lib/own.ts";
import type { Item } from "./received.ts";
import { fieldsOf, type Row } from "./row-store.ts";

const MAX_COLUMNS = 8;
const LONGEST_TEXT = 200;
const ONE_LINE = 48;

/** The last rows, the newest first. */
export function RowTable({ rows, total }: { rows: readonly Row[]; total: number }) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(fieldsOf(row))))].slice(0, MAX_COLUMNS);
  const newestFirst = rows.map((row, i) => ({ number: total - rows.length + i + 1, fields: fieldsOf(row) })).reverse();
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be within the keyboard's reach.
    <section class="table rows" tabIndex={0} aria-label="The last rows">
      <table>
        <caption>
          {total > rows.length ? `The last ${rows.length} of ${countOf(total, "row")}` : countOf(total, "row")}
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

const Cell = ({ text }: { text: string }) => <td class={text.length > ONE_LINE ? "long" : undefined}>{text}</td>;

/** What emulators and commands have to say: a few words each, the newest first. */
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

const TITLES: Record<Item["type"], string> = { command: "Answer", emulator: "Emulator" };

/** With the fields of fields beside them: what is said is mostly one level deeper. */
const flatFields = (data: Row): [string, unknown][] =>
  Object.entries(fieldsOf(data)).flatMap(([name, value]) =>
    typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value) : [[name, value]],
  );

function cellText(value: unknown): string {
  const text = typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text;
}
