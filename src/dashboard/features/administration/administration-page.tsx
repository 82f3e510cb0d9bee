import type { ComponentType } from "preact";
import { href, type PageProps } from "../../app/router.ts";
import { Empty } from "../../components/states.tsx";
import { own } from "../../lib/format.ts";
import { AccessPointsTab } from "./access-points/access-points-tab.tsx";
import { AppsTab } from "./apps/apps-tab.tsx";
import { AuditTab } from "./audit/audit-tab.tsx";
import { UsersTab } from "./users/users-tab.tsx";
import "../../style/administration.css";

/** By the second segment of the path. */
const TABS: { [path: string]: { title: string; content: ComponentType<PageProps> } } = {
  users: { title: "Users", content: UsersTab },
  agents: { title: "Access points", content: AccessPointsTab },
  apps: { title: "Apps", content: AppsTab },
  audit: { title: "Audit trail", content: AuditTab },
};

/** Manages users, access points and apps, and shows the audit trail. */
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
        <Empty title="There is no such page">Choose a tab above.</Empty>
      ) : (
        <Content key={current} route={route} />
      )}
    </div>
  );
}
