import type { ComponentChildren } from "preact";
import { href } from "../../app/router.ts";
import { ConditionMark, TechnologyBadge } from "../../components/badges.tsx";
import { Ago } from "../../components/time.tsx";
import { numberText, percentText } from "../../lib/format.ts";
import type { CurrentStatus } from "./current-status.ts";
import { Sources } from "./sources.tsx";

/** Shows the name, the technology and the current status of an access point. */
export function AccessPointHeader({
  apId,
  type,
  status,
  children,
}: {
  apId: string;
  type: string | null;
  status: CurrentStatus | undefined;
  /** Shown below the name. */
  children: ComponentChildren;
}) {
  return (
    <header class="ap-head">
      <a href={href([])}>← All access points</a>
      <div class="row">
        <h1>{apId}</h1>
        <TechnologyBadge type={type} />
        {status && <ConditionMark condition={status.condition} />}
      </div>
      {children}
      <dl class="vitals">
        <div>
          <dt>Last seen</dt>
          <dd>{status === undefined ? "…" : <Ago ts={status.lastSeen} />}</dd>
        </div>
        <StatusValue name="Load" text={percentText(status?.load ?? null)} />
        <StatusValue name="Quality" text={percentText(status?.quality ?? null)} />
        <StatusValue name="Users" text={numberText(status?.users ?? undefined)} />
        <div>
          <dt>Source of its samples</dt>
          <dd>{status === undefined ? "…" : <Sources sources={status.sources} lastSeen={status.lastSeen} />}</dd>
        </div>
      </dl>
    </header>
  );
}

function StatusValue({ name, text }: { name: string; text: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{text}</dd>
    </div>
  );
}
