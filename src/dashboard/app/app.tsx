import { useRef } from "preact/hooks";
import { ConnectionNotice, Notices } from "../components/notices.tsx";
import { SignInPages } from "../features/account/sign-in-pages.tsx";
import { own } from "../lib/format.ts";
import { FiringCount } from "./alert-bell.tsx";
import { Page, type PageEntry } from "./page.tsx";
import { href, route } from "./router.ts";
import { may, type Session, session, signOut } from "./session.ts";
import { SignInAgain } from "./sign-in-again.tsx";
import { chooseTheme, type Theme, theme } from "./theme.ts";

/** Keyed by the first segment of the path. */
const PAGES: Record<string, PageEntry> = {
  "": {
    title: "Overview",
    icon: "M3 6l6-3 6 3 6-3v15l-6 3-6-3-6 3zM9 3v15M15 6v15",
    load: async () => (await import("../features/overview/overview-page.tsx")).Overview,
  },
  alerts: {
    title: "Alerts",
    icon: "M6 16v-5a6 6 0 0 1 12 0v5l1.5 2h-15zM10 21h4",
    load: async () => (await import("../features/alerts/alerts-page.tsx")).Alerts,
  },
  emulator: {
    title: "Emulator",
    icon: "M12 20v-8M8.5 15.5a5 5 0 1 1 7 0M6 18a8.5 8.5 0 1 1 12 0",
    scopes: ["emulator:run"],
    load: async () => (await import("../features/emulator/emulator-page.tsx")).Emulator,
  },
  jobs: {
    title: "Jobs",
    icon: "M4 6h16M4 12h16M4 18h10",
    load: async () => (await import("../features/jobs/jobs-page.tsx")).Jobs,
  },
  administration: {
    title: "Administration",
    icon: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c0-4 4-6 8-6s8 2 8 6",
    // Managers register access points there.
    scopes: ["users:manage", "agents:manage"],
    load: async () => (await import("../features/administration/administration-page.tsx")).Administration,
  },
};

/** Linked from the overview; the navigation marks the overview as current. */
const ACCESS_POINT: PageEntry = {
  title: "Access point",
  icon: "",
  load: async () => (await import("../features/access-point/access-point-page.tsx")).AccessPoint,
};

/** Linked from the account menu. */
const ACCOUNT: PageEntry = {
  title: "Your account",
  icon: "",
  load: async () => (await import("../features/account/account-page.tsx")).Account,
};

export function App() {
  const current = session.value;
  // A reset link also works for a user who is signed in. That page removes the link's token from the address.
  const isResetting = route.value.path[0] === "reset-password";
  return (
    <>
      <ConnectionNotice />
      {current === undefined || isResetting ? <SignInPages /> : <SignedIn {...current} />}
      <Notices />
    </>
  );
}

const mayOpen = ({ scopes }: PageEntry): boolean => scopes?.some(may) ?? true;

function SignedIn({ username }: Pick<Session, "username">) {
  const current = route.value;
  const section = current.path[0] ?? "";
  const entry = section === "access-points" ? ACCESS_POINT : section === "account" ? ACCOUNT : own(PAGES, section);
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the content
      </button>
      <div class="shell">
        <nav aria-label="Main">
          <p class="brand">
            <span aria-hidden="true" />
            Network Controller
          </p>
          <ul>
            {Object.entries(PAGES)
              .filter(([, page]) => mayOpen(page))
              .map(([path, { title, icon }]) => (
                <li key={path}>
                  <a
                    href={href(path === "" ? [] : [path])}
                    aria-current={section === path || (section === "access-points" && path === "") ? "page" : undefined}
                  >
                    <svg viewBox="0 0 24 24" aria-hidden="true">
                      <path d={icon} />
                    </svg>
                    {title}
                    {path === "alerts" && <FiringCount />}
                  </a>
                </li>
              ))}
          </ul>
          <AccountMenu username={username} />
        </nav>
        <main id="main" tabIndex={-1}>
          {entry !== undefined && mayOpen(entry) ? <Page key={section} entry={entry} route={current} /> : <NotFound />}
        </main>
      </div>
      <SignInAgain />
    </>
  );
}

function NotFound() {
  return (
    <section>
      <h1>Page not found</h1>
      <p>
        There is no such page. <a href={href([])}>Open the overview.</a>
      </p>
    </section>
  );
}

const THEMES: readonly (readonly [Theme, string])[] = [
  ["system", "System"],
  ["light", "Light"],
  ["dark", "Dark"],
];

function AccountMenu({ username }: { username: string }) {
  const details = useRef<HTMLDetailsElement>(null);
  return (
    <details class="account" ref={details}>
      <summary>
        <span class="account-name">{username}</span>
      </summary>
      <div>
        <label>
          Colours
          <select value={theme.value} onChange={({ currentTarget }) => chooseTheme(currentTarget.value as Theme)}>
            {THEMES.map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <a href={href(["account"])} onClick={() => details.current?.removeAttribute("open")}>
          Your account
        </a>
        <a href="/docs">API reference</a>
        <button type="button" onClick={signOut}>
          Sign out
        </button>
      </div>
    </details>
  );
}
