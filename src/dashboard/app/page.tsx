import type { ComponentType } from "preact";
import { useEffect, useErrorBoundary, useState } from "preact/hooks";
import { onReconnect } from "../api/connection.ts";
import { Failed, Loading } from "../components/states.tsx";
import type { PageProps, Route } from "./router.ts";
import type { Scope } from "./session.ts";

export interface PageEntry {
  /** Shown in the navigation and in the window's title. */
  title: string;
  icon: string;
  /** The page is for users with at least one of these scopes. Undefined: for all. */
  scopes?: readonly Scope[];
  /** Loads the page's code on its first visit. */
  load(): Promise<ComponentType<PageProps>>;
}

const MISSING = "This page could not be loaded. The service may have been updated, or the connection was lost.";
const BROKEN = "This page stopped because of an error in the dashboard. The browser's console shows the details.";

/**
 * Messages of browsers, and of Vite for style sheets, if a file cannot be fetched. There is no error type for it: an error with any
 * other message was thrown by the module itself.
 */
const MISSING_FILE = [
  /^Failed to fetch dynamically imported module/i, // Chromium
  /^error loading dynamically imported module/i, // Firefox
  /^Importing a module script failed/i, // Safari
  /^Unable to preload CSS/i, // Vite
];

/** Returns whether an import failed because a file is missing, as after an update of the service, or the network is down. */
const isMissingFile = (error: unknown): boolean =>
  error instanceof Error && MISSING_FILE.some((text) => text.test(error.message));

const reload = () => location.reload();

/** The browser sets the focus for the first page only. */
let hasShownPage = false;

/** Loads and shows one page, or an error with a button to reload. */
export function Page({ entry, route }: { entry: PageEntry; route: Route }) {
  const [loaded, setLoaded] = useState<ComponentType<PageProps>>();
  const [loadError, setLoadError] = useState<unknown>();
  const [bug] = useErrorBoundary((error) => console.error(error));
  const isMissing = isMissingFile(loadError);
  useEffect(() => {
    document.title = `${entry.title} · Network Controller`;
    entry.load().then(
      (component) => setLoaded(() => component),
      (error: unknown) => {
        console.error(error);
        // A module may throw any value, including undefined.
        setLoadError(error ?? new Error("The module threw no error"));
      },
    );
    // Moving the focus makes screen readers announce the new page.
    if (hasShownPage) document.getElementById("main")?.focus();
    hasShownPage = true;
  }, [entry]);
  useEffect(() => (isMissing ? onReconnect(reload) : undefined), [isMissing]);
  // A reload keeps the session, and fetches the files of the service's current version.
  if (loadError !== undefined || bug !== undefined)
    return <Failed error={new Error(isMissing ? MISSING : BROKEN)} onRetry={reload} retryText="Reload the page" />;
  const Component = loaded;
  return Component === undefined ? <Loading /> : <Component route={route} />;
}
