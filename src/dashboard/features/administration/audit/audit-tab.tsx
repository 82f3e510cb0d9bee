import { useEffect, useState } from "preact/hooks";
import type { AuditEntry } from "../../../../schemas/accounts/audit.ts";
import { href, navigate, type PageProps } from "../../../app/router.ts";
import { Form, TextField } from "../../../components/form.tsx";
import { Empty, Failed, Loading } from "../../../components/states.tsx";
import { Ago, timeText } from "../../../components/time.tsx";
import { describeAction, detailText, parseIdentifier } from "./audit-text.ts";
import { useAuditTrail } from "./use-audit-trail.ts";

const AUDIT_PATH = ["administration", "audit"];

/** Shows who changed which account or access point. The address contains the filter, so that people can share it. */
export function AuditTab({ route: { query } }: PageProps) {
  const actor = query.get("actor") ?? undefined;
  const object = query.get("object") ?? undefined;
  const { newest, entries, older, hasOlder, isNewestHidden } = useAuditTrail(actor, object);
  const isFiltered = actor !== undefined || object !== undefined;
  return (
    <section class="stack" aria-label="Audit trail">
      <Filter actor={actor ?? ""} object={object ?? ""} isBusy={newest.isBusy} onRefresh={newest.refresh} />
      <Failed error={newest.error} onRetry={newest.refresh} />
      {newest.data === undefined && newest.error === undefined && <Loading lines={10} />}
      {newest.data?.length === 0 && (
        <Empty title={isFiltered ? "No entries match this filter" : "No entries yet"}>
          {isFiltered ? (
            <>
              Enter the full name with its kind before the colon. <a href={href(AUDIT_PATH)}>Show all entries</a>
            </>
          ) : (
            "Changes to accounts, commands and emulations appear here."
          )}
        </Empty>
      )}
      {isNewestHidden && (
        <p class="soft">
          Newer entries are not shown.{" "}
          <button type="button" class="small" onClick={newest.refresh}>
            Show newest entries
          </button>
        </p>
      )}
      {entries.length > 0 && <Entries entries={entries} />}
      <Failed error={older.error} />
      {hasOlder && (
        <button type="button" class="show-more" disabled={older.isBusy} onClick={() => void older.run()}>
          Show older entries
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
  const apply = () => navigate(AUDIT_PATH, { actor: draft.actor.trim(), object: draft.object.trim() });
  return (
    <Form onSubmit={apply}>
      <div class="audit-filter">
        <TextField
          label="Actor"
          type="search"
          autocomplete="off"
          placeholder="admin:me@example.com"
          value={draft.actor}
          onValue={(value) => setDraft({ ...draft, actor: value })}
        />
        <TextField
          label="Target"
          type="search"
          autocomplete="off"
          placeholder="agent:roof-1"
          value={draft.object}
          onValue={(value) => setDraft({ ...draft, object: value })}
        />
        <button type="submit">Apply filter</button>
        {(actor !== "" || object !== "") && (
          <a class="button" href={href(AUDIT_PATH)}>
            Clear filter
          </a>
        )}
        <button type="button" disabled={isBusy} onClick={onRefresh}>
          Refresh
        </button>
      </div>
      <p class="hint">
        Enter a full name with its kind, such as user:me@example.com or agent:roof-1 (an access point), or select a name
        below.
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
            <th>Time</th>
            <th>Actor</th>
            <th>Action</th>
            <th>Target</th>
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
                <FilterLink text={actor} address={href(AUDIT_PATH, { actor })} />
              </td>
              <td>
                {describeAction(action)}
                {detail !== null && <span class="soft">{detailText(detail)}</span>}
              </td>
              <td>
                <FilterLink text={object} address={href(AUDIT_PATH, { object })} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A name that links to all entries with it. */
function FilterLink({ text, address }: { text: string; address: string }) {
  const { name, kind } = parseIdentifier(text);
  return (
    <>
      <a href={address}>{name}</a>
      <span class="soft">{kind}</span>
    </>
  );
}
