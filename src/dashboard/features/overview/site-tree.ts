import type { AccessPointState } from "../../../schemas/overview.ts";

/** A site with the sites below it. */
export interface Site {
  /** The last part of the path. */
  name: string;
  path: string;
  /** Access points at this site and below it. */
  count: number;
  online: number;
  below: readonly Site[];
}

export interface SiteTree {
  sites: readonly Site[];
  /** The access points without a site. */
  without: { count: number; online: number };
}

interface Node {
  count: number;
  online: number;
  below: Map<string, Node>;
}

const newNode = (): Node => ({ count: 0, online: 0, below: new Map() });

/** Counts the access points of each site. The label `site` is a path: `uk/bristol` is below `uk`. */
export function siteTreeOf(accessPoints: readonly Pick<AccessPointState, "site" | "online">[]): SiteTree {
  const root = newNode();
  const without = { count: 0, online: 0 };
  for (const { site, online } of accessPoints) {
    let node = root;
    const counted = site === null ? [without] : [];
    for (const name of site?.split("/") ?? []) {
      const found = node.below.get(name) ?? newNode();
      node.below.set(name, found);
      counted.push(found);
      node = found;
    }
    for (const one of counted) {
      one.count += 1;
      one.online += online ? 1 : 0;
    }
  }
  return { sites: sitesOf(root, ""), without };
}

const sitesOf = ({ below }: Node, prefix: string): Site[] =>
  [...below]
    .map(([name, node]) => {
      const path = prefix + name;
      return { name, path, count: node.count, online: node.online, below: sitesOf(node, `${path}/`) };
    })
    .sort((one, other) => collator.compare(one.name, other.name));

const collator = new Intl.Collator("en", { numeric: true });

/** Returns whether a site is the other one or above it. */
export const isAbove = (path: string, other: string): boolean => other === path || other.startsWith(`${path}/`);
