import type { ComponentType } from "preact";
import { href, type PageProps } from "../../app/router.ts";
import { Empty } from "../../components/states.tsx";
import { own } from "../../lib/own.ts";
import { AccessPoints } from "./access-points/access-points.tsx";
import { Apps } from "./apps/apps.tsx";
import { Audit } from "./audit/audit.tsx";
import { Users } from "./users/users.tsx";
import "../../style/administration.css";

/** By the second part of the path. */
const TABS: { [path: string]: { title: string; content: ComponentType<PageProps> } } = {
  users: { title: "Users", content: Users },
  agents: { title: "Access points", content: AccessPoints },
  apps: { title: "Apps", content: Apps },
  audit: { title: "Audit trail", content: Audit },
};

/** Accounts of all kinds, and who changed them. */
export function Administration({ route }: PageProps) {
  const current = route.path[1] ?? "users";
  const Content = own(TABS, current)?.content;
  return (
    <div class="stack">
      <h1>Administration</h1>
      <nav class="tabs" aria-label="Administration">
        {Object.entries(TABS).map(([path, { title }]) => (
          <a key={path} href={href(["administration", path])} aria-current={path === current ? "page" : undefined}>
            {title}
          </a>
        ))}
      </nav>
      {Content === undefined ? (
        <Empty title="There is no such part">Choose one above.</Empty>
      ) : (
        <Content key={current} route={route} />
      )}
    </div>
  );
}
