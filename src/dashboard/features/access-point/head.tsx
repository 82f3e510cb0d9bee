import { href } from "../../app/router.ts";
import { ConditionMark, TechnologyBadge } from "../../components/badges.tsx";
import { Ago } from "../../components/time.tsx";
import { numberText, percentText } from "../../lib/format.ts";
import type { Vitals } from "./vitals.ts";

/** Who it is, and how it does. */
export function Head({ apId, type, vitals }: { apId: string; type: string | null; vitals: Vitals | undefined }) {
  return (
    <header class="ap-head">
      <a href={href([])}>← All access points</a>
      <div class="row">
        <h1>{apId}</h1>
        <TechnologyBadge type={type} />
        {vitals && <ConditionMark condition={vitals.condition} />}
      </div>
      <dl class="vitals">
        <div>
          <dt>Last seen</dt>
          <dd>{vitals === undefined ? "…" : <Ago ts={vitals.lastSeen} />}</dd>
        </div>
        <Figure name="Load" text={percentText(vitals?.load ?? null)} />
        <Figure name="Quality" text={percentText(vitals?.quality ?? null)} />
        <Figure name="Users" text={numberText(vitals?.users ?? undefined)} />
      </dl>
    </header>
  );
}

function Figure({ name, text }: { name: string; text: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{text}</dd>
    </div>
  );
}
