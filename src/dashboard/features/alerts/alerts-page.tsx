import type { ComponentType } from "preact";
import { href, type PageProps } from "../../app/router.ts";
import { Empty } from "../../components/states.tsx";
import { own } from "../../lib/format.ts";
import { SubscriptionsTab } from "../notifications/subscriptions-tab.tsx";
import { CurrentTab } from "./current-tab.tsx";
import { HistoryTab } from "./history-tab.tsx";
import { RuleEditor } from "./rules/rule-editor.tsx";
import { RulesTab } from "./rules/rules-tab.tsx";
import { SilencesTab } from "./silences-tab.tsx";
import "../../style/administration.css";
import "../../style/charts.css";
import "../../style/alerts.css";

/** By the second segment of the path. */
const TABS: { [path: string]: { title: string; content: ComponentType<PageProps> } } = {
  "": { title: "Current", content: CurrentTab },
  history: { title: "History", content: HistoryTab },
  rules: { title: "Rules", content: Rules },
  silences: { title: "Silences", content: SilencesTab },
  notifications: { title: "Notifications", content: SubscriptionsTab },
};

/** Alerts, the rules that cause them, and who is notified. */
export function Alerts({ route }: PageProps) {
  const current = route.path[1] ?? "";
  const Content = own(TABS, current)?.content;
  return (
    <div class="stack">
      <h1>Alerts</h1>
      <nav class="tabs" aria-label="Alerts">
        {Object.entries(TABS).map(([path, { title }]) => (
          <a
            key={path}
            href={href(path === "" ? ["alerts"] : ["alerts", path])}
            aria-current={path === current ? "page" : undefined}
          >
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

function Rules({ route }: PageProps) {
  const id = route.path[2];
  return id === undefined ? <RulesTab /> : <RuleEditor id={id} />;
}
