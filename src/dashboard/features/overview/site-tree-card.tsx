import { useState } from "preact/hooks";
import { countOf } from "../../lib/format.ts";
import { isAbove, type Site, type SiteTree } from "./site-tree.ts";

/** Sites of one level that are drawn at first. */
const PAGE_SITES = 50;

interface Choice {
  /** Null: the access points without a site. Undefined: no site is chosen. */
  chosen: string | null | undefined;
  onChoose(path: string | null | undefined): void;
}

/** Shows the sites with their counters. A click filters the overview by the site, a second click shows all again. */
export function SiteTreeCard({ tree, chosen, onChoose }: Choice & { tree: SiteTree }) {
  return (
    <section class="card site-tree" aria-labelledby="sites-title">
      <h2 id="sites-title">Sites</h2>
      <SiteList sites={tree.sites} {...{ chosen, onChoose }} />
      {tree.without.count > 0 && (
        <SiteButton
          name="Without a site"
          {...tree.without}
          isChosen={chosen === null}
          onClick={() => onChoose(chosen === null ? undefined : null)}
        />
      )}
    </section>
  );
}

function SiteList({ sites, ...choice }: Choice & { sites: readonly Site[] }) {
  const [limit, setLimit] = useState(PAGE_SITES);
  return (
    <ul>
      {sites.slice(0, limit).map((site) => (
        <SiteItem key={site.path} site={site} isOnly={sites.length === 1} {...choice} />
      ))}
      {sites.length > limit && (
        <li>
          <button type="button" class="small" onClick={() => setLimit(limit + PAGE_SITES)}>
            Show more ({sites.length - limit} left)
          </button>
        </li>
      )}
    </ul>
  );
}

function SiteItem({ site, isOnly, chosen, onChoose }: Choice & { site: Site; isOnly: boolean }) {
  const { name, path, count, online, below } = site;
  const [isToggled, setIsToggled] = useState<boolean>();
  // The way to the chosen site is open, unless the user has closed it.
  const isOpen = isToggled ?? (isOnly || (typeof chosen === "string" && isAbove(path, chosen)));
  return (
    <li>
      <div class="site">
        {below.length > 0 && (
          <button
            type="button"
            class="quiet toggle"
            aria-expanded={isOpen}
            aria-label={`Sites below ${path}`}
            onClick={() => setIsToggled(!isOpen)}
          >
            {isOpen ? "▾" : "▸"}
          </button>
        )}
        <SiteButton
          name={name || "/"}
          {...{ count, online }}
          isChosen={chosen === path}
          onClick={() => onChoose(chosen === path ? undefined : path)}
        />
      </div>
      {isOpen && below.length > 0 && <SiteList sites={below} {...{ chosen, onChoose }} />}
    </li>
  );
}

function SiteButton({
  name,
  count,
  online,
  isChosen,
  onClick,
}: {
  name: string;
  count: number;
  online: number;
  isChosen: boolean;
  onClick(): void;
}) {
  return (
    <button type="button" class="site-name" aria-pressed={isChosen} onClick={onClick}>
      <span>{name}</span>
      <span class="site-counts">
        <span class="hidden-text">, {countOf(count, "access point")}, </span>
        <span aria-hidden="true">{count.toLocaleString("en")}</span>
        <span class={online < count ? "soft" : "all-online"}>{online.toLocaleString("en")} online</span>
      </span>
    </button>
  );
}
