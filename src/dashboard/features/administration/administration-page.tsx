import type { ComponentType } from "preact";
import { href, type PageProps } from "../../app/router.ts";
import { may, type Scope } from "../../app/session.ts";
import { Empty } from "../../components/states.tsx";
import { own } from "../../lib/format.ts";
import { AccessPointsTab } from "./access-points/access-points-tab.tsx";
import { AppsTab } from "./apps/apps-tab.tsx";
import { AuditTab } from "./audit/audit-tab.tsx";
import { EnrolmentTab } from "./enrolment/enrolment-tab.tsx";
import { GroupsTab } from "./groups/groups-tab.tsx";
import { UsersTab } from "./users/users-tab.tsx";
import "../../style/administration.css";

/** By the second segment of the path. */
const TABS: { [path: string]: { title: string; scope: Scope; content: ComponentType<PageProps> } } = {
  users: { title: "Users", scope: "users:manage", content: UsersTab },
  agents: { title: "Access points", scope: "agents:manage", content: AccessPointsTab },
  groups: { title: "Groups", scope: "users:manage", content: GroupsTab },
  enrolment: { title: "Enrolment", scope: "agents:manage", content: EnrolmentTab },
  apps: { title: "Apps", scope: "apps:manage", content: AppsTab },
  audit: { title: "Audit trail", scope: "audit:read", content: AuditTab },
};

/** Manages accounts, access points and groups, and shows the audit trail. Shows each user the allowed tabs. */
export function Administration({ route }: PageProps) {
  const tabs = Object.fromEntries(Object.entries(TABS).filter(([, { scope }]) => may(scope)));
  const current = route.path[1] ?? Object.keys(tabs)[0] ?? "";
  const Content = own(tabs, current)?.content;
  return (
    <div class="stack">
      <h1>Administration</h1>
      <nav class="tabs" aria-label="Administration">
        {Object.entries(tabs).map(([path, { title }]) => (
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
