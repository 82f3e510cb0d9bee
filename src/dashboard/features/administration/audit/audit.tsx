import { useEffect, useState } from "preact/hooks";
import type { AuditEntry } from "../../../../schemas/audit.ts";
import { href, navigate, type PageProps } from "../../../app/router.ts";
import { Form, TextField } from "../../../components/form.tsx";
import { Empty, Failed, Loading } from "../../../components/states.tsx";
import { Ago, timeText } from "../../../components/time.tsx";
import { describeAction, detailText, parseActor } from "./audit-text.ts";
import { useTrail } from "./trail.ts";

const HERE = ["administration", "audit"];

/** Who did what to which account or access point. What it is filtered by is in the address, so that it can be gone back to and passed on. */
export function Audit({ route: { query } }: PageProps) {
  const actor = query.get("actor") ?? undefined;
  const object = query.get("object") ?? undefined;
  const { newest, entries, older, hasOlder, isNewestGone } = useTrail(actor, object);
  const isFiltered = actor !== undefined || object !== undefined;
  return (
    <section class="stack" aria-label="Audit trail">
      <Filter actor={actor ?? ""} object={object ?? ""} isBusy={newest.isBusy} onRefresh={newest.refresh} />
      <Failed error={newest.error} onRetry={newest.refresh} />
      {newest.data === undefined && newest.error === undefined && <Loading lines={10} />}
      {newest.data?.length === 0 && (
        <Empty title="No entries">
          {isFiltered ? (
            <>
              Names are compared whole, with what they are before the colon. <a href={href(HERE)}>Show all entries</a>
            </>
          ) : (
            "Changes of accounts, commands and emulations are listed here."
          )}
        </Empty>
      )}
      {isNewestGone && (
        <p class="soft">
          Newer entries are not shown.{" "}
          <button type="button" class="small" onClick={newest.refresh}>
            Back to the newest
          </button>
        </p>
      )}
      {entries.length > 0 && <Entries entries={entries} />}
      <Failed error={older.error} />
      {hasOlder && (
        <button type="button" class="show-more" disabled={older.isBusy} onClick={() => void older.run()}>
          Older entries
        </button>
      )}
    </section>
  );
}

function Filter({
  actor,
  object,
  isBusy,
  onRefresh,
}: {
  actor: string;
  object: string;
  isBusy: boolean;
  onRefresh(): void;
}) {
  const [draft, setDraft] = useState({ actor, object });
  useEffect(() => setDraft({ actor, object }), [actor, object]);
  const apply = () => navigate(HERE, { actor: draft.actor.trim(), object: draft.object.trim() });
  return (
    <Form onSubmit={apply}>
      <div class="audit-filter">
        <TextField
          label="Done by"
          type="search"
          autocomplete="off"
          placeholder="admin:me@example.com"
          value={draft.actor}
          onValue={(value) => setDraft({ ...draft, actor: value })}
        />
        <TextField
          label="Done to"
          type="search"
          autocomplete="off"
          placeholder="agent:roof-1"
          value={draft.object}
          onValue={(value) => setDraft({ ...draft, object: value })}
        />
        <button type="submit">Filter</button>
        {(actor !== "" || object !== "") && (
          <a class="button" href={href(HERE)}>
            Show all
          </a>
        )}
        <button type="button" disabled={isBusy} onClick={onRefresh}>
          Refresh
        </button>
      </div>
      <p class="hint">
        Exactly as written, with the kind first: user:… admin:… agent:… app:… – or choose a name in the list.
      </p>
    </Form>
  );
}

function Entries({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <div class="table">
      <table class="audit">
        <thead>
          <tr>
            <th>When</th>
            <th>Who</th>
            <th>What</th>
            <th>To</th>
          </tr>
        </thead>
        <tbody>
          {entries.map(({ id, at, actor, action, object, detail }) => (
            <tr key={id}>
              <td>
                {timeText(at)}
                <span class="soft">
                  <Ago ts={at} />
                </span>
              </td>
              <td>
                <Party text={actor} address={href(HERE, { actor })} />
              </td>
              <td>
                {describeAction(action)}
                {detail !== null && <span class="soft">{detailText(detail)}</span>}
              </td>
              <td>
                <Party text={object} address={href(HERE, { object })} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A name that leads to everything it did, or that was done to it. */
function Party({ text, address }: { text: string; address: string }) {
  const { name, kind } = parseActor(text);
  return (
    <>
      <a href={address}>{name}</a>
      <span class="soft">{kind}</span>
    </>
  );
}
