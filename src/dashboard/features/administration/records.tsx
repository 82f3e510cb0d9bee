import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { TextField } from "../../components/form.tsx";
import { Empty, Failed, Loading } from "../../components/states.tsx";
import type { Loaded } from "../../lib/load.ts";

/** A list may have ten thousand records. Drawing all of them would take long. */
const PAGE_SIZE = 50;

interface Noun {
  one: string;
  many: string;
}

/** A searchable list that shows one page at a time. */
export function Records<T>({
  noun,
  loaded,
  textOf,
  create,
  empty,
  children,
}: {
  /** The word for a record, in lower case. */
  noun: Noun;
  loaded: Loaded<readonly T[]>;
  /** Returns the text of a record that the search matches. */
  textOf(record: T): string;
  create: { label: string; onClick(): void };
  empty: ComponentChildren;
  /** Renders one record with its key. */
  children(record: T): ComponentChildren;
}) {
  const { data, error, isBusy, refresh } = loaded;
  const [search, setSearch] = useState("");
  const [shown, setShown] = useState(PAGE_SIZE);
  const searched = search.trim().toLowerCase();
  const found = (data ?? []).filter((record) => textOf(record).toLowerCase().includes(searched));
  const searchFor = (text: string) => {
    setSearch(text);
    setShown(PAGE_SIZE);
  };
  return (
    <section class="stack" aria-label={noun.many}>
      <div class="records-tools">
        <TextField label={`Search ${noun.many}`} type="search" autocomplete="off" value={search} onValue={searchFor} />
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
            {countText(found.length, data.length, noun)}
          </p>
          {data.length === 0 && <Empty title={`No ${noun.many} yet`}>{empty}</Empty>}
          {data.length > 0 && found.length === 0 && (
            <Empty title={`No ${noun.many} match your search`}>
              <button type="button" onClick={() => searchFor("")}>
                Clear search
              </button>
            </Empty>
          )}
          {found.length > 0 && <ul class="records">{found.slice(0, shown).map(children)}</ul>}
          {found.length > shown && (
            <button type="button" class="show-more" onClick={() => setShown(shown + PAGE_SIZE)}>
              Show more ({(found.length - shown).toLocaleString("en")} left)
            </button>
          )}
        </>
      )}
    </section>
  );
}

function countText(found: number, all: number, { one, many }: Noun): string {
  const of = found === all ? "" : `${found.toLocaleString("en")} of `;
  return `${of}${all.toLocaleString("en")} ${all === 1 ? one : many}`;
}

/** One record: its name, a description and its actions. */
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

/** The label is the same on every row, so screen readers get the name of the record as well. */
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
