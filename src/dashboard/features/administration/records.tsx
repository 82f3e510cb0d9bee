import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { TextField } from "../../components/form.tsx";
import { Empty, Failed, Loading } from "../../components/states.tsx";
import type { Loaded } from "../../lib/load.ts";

/** There may be ten thousand of them; nobody reads so many, and drawing them would take long. */
const PAGE = 50;

interface Words {
  one: string;
  many: string;
}

/** A list to search in, drawn a page at a time. */
export function Records<T>({
  what,
  loaded,
  textOf,
  create,
  empty,
  children,
}: {
  /** What they are called, in the middle of a sentence. */
  what: Words;
  loaded: Loaded<readonly T[]>;
  /** What a search looks at. */
  textOf(record: T): string;
  create: { label: string; onClick(): void };
  empty: ComponentChildren;
  /** Draws one; it brings its key along. */
  children(record: T): ComponentChildren;
}) {
  const { data, error, isBusy, refresh } = loaded;
  const [search, setSearch] = useState("");
  const [shown, setShown] = useState(PAGE);
  const wanted = search.trim().toLowerCase();
  const found = (data ?? []).filter((record) => textOf(record).toLowerCase().includes(wanted));
  const find = (text: string) => {
    setSearch(text);
    setShown(PAGE);
  };
  return (
    <section class="stack" aria-label={what.many}>
      <div class="records-tools">
        <TextField label={`Search ${what.many}`} type="search" autocomplete="off" value={search} onValue={find} />
        <button type="button" disabled={isBusy} onClick={refresh}>
          Refresh
        </button>
        <button type="button" class="primary" onClick={create.onClick}>
          {create.label}
        </button>
      </div>
      <Failed error={error} onRetry={refresh} />
      {data === undefined ? (
        error === undefined && <Loading lines={6} />
      ) : (
        <>
          <p class="soft records-count" role="status">
            {countText(found.length, data.length, what)}
          </p>
          {data.length === 0 && <Empty title={`No ${what.many} yet`}>{empty}</Empty>}
          {data.length > 0 && found.length === 0 && (
            <Empty title="Nothing found">
              <button type="button" onClick={() => find("")}>
                Show all
              </button>
            </Empty>
          )}
          {found.length > 0 && <ul class="records">{found.slice(0, shown).map(children)}</ul>}
          {found.length > shown && (
            <button type="button" class="show-more" onClick={() => setShown(shown + PAGE)}>
              Show more ({(found.length - shown).toLocaleString("en")} left)
            </button>
          )}
        </>
      )}
    </section>
  );
}

function countText(found: number, all: number, { one, many }: Words): string {
  const of = found === all ? "" : `${found.toLocaleString("en")} of `;
  return `${of}${all.toLocaleString("en")} ${all === 1 ? one : many}`;
}

/** One of them: what it is, and what can be done with it. */
export function RecordRow({
  name,
  about,
  children,
}: {
  name: ComponentChildren;
  about: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <li>
      <div class="record-name">{name}</div>
      <div class="record-about">{about}</div>
      <div class="record-actions">{children}</div>
    </li>
  );
}

/** The same few words on every row: those who listen are told of whom. */
export function RecordButton({
  label,
  of,
  isDangerous = false,
  onClick,
}: {
  label: string;
  of: string;
  isDangerous?: boolean;
  onClick(): void;
}) {
  return (
    <button
      type="button"
      class={isDangerous ? "small deletes" : "small"}
      aria-label={`${label}: ${of}`}
      onClick={onClick}
    >
      {label}
    </button>
  );
}
