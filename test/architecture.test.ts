import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "../src/programs/shared/system.ts";

/** Bottom to top: a folder of `src` imports only from itself and from those before it. */
const ORDER = [
  ...["lib", "protocols", "env.ts", "auth", "schemas", "rules", "storage", "monitoring", "mail", "accounts"],
  ...["geo", "broker"],
  ...["events", "alerts", "telemetry", "fleet", "jobs", "commands", "emulator", "alerting", "delivery"],
  ...["http", "routes"],
  ...["instrumentation.ts", "rare-services.ts", "services-on-demand.ts", "services.ts", "app.ts", "worker.ts"],
];
/** Routes receive their services from above, by this type only. */
const TYPES_FROM_ABOVE = new Set(["services.ts"]);

/** The only file outside `src` that `src` may import, as a path from `src`. Packages are imported by name, not by path. */
const OUTSIDE_SRC = ["../package.json"];

/** Files that a program in Node may import. None of them needs workerd. */
const FOR_PROGRAMS = [
  ...["lib/", "env.ts", "auth/", "schemas/", "storage/libsql.ts", "storage/clickhouse.ts", "accounts/", "geo/"],
  ...[
    "broker/topics.ts",
    "broker/client-kind.ts",
    "broker/outbox-table.ts",
    "emulator/models/",
    "emulator/emulation-tables.ts",
    "programs/",
  ],
];

interface Import {
  from: string;
  to: string;
  isType: boolean;
}

const SRC = join(ROOT, "src");
const IMPORT =
  /^(?:import|export)\s+(type\s)?[^"';]*?from\s+"(\.[^"]+)"|^import\s+"(\.[^"]+)"|\bimport\("(\.[^"]+)"\)/gm;

function importsOf(file: string): Import[] {
  const text = readFileSync(join(SRC, file), "utf8");
  return Array.from(text.matchAll(IMPORT), ([, type, ...specifiers]) => {
    const specifier = specifiers.find((one) => one !== undefined) ?? "";
    return { from: file, to: relative(SRC, join(SRC, dirname(file), specifier)), isType: type !== undefined };
  });
}

const sources = globSync("**/*.{ts,tsx}", { cwd: SRC }).filter((file) => !file.endsWith(".d.ts"));
const imports = sources.flatMap(importsOf);
const folderOf = (file: string): string => file.split("/")[0] ?? "";
const isIn = (folder: string) => (file: string) => folderOf(file) === folder;
const show = ({ from, to }: Import): string => `${from} imports ${to}`;

describe("the folders of src", () => {
  it("are all found", () => {
    expect(imports.length).toBeGreaterThan(500);
    const folders = new Set(sources.map(folderOf));
    expect([...folders].filter((folder) => !ORDER.includes(folder)).toSorted()).toEqual(["dashboard", "programs"]);
  });

  it("import nothing outside src except package.json and packages", () => {
    const isOutside = ({ to }: Import) => to.startsWith("..") && !OUTSIDE_SRC.includes(to);
    expect(imports.filter(isOutside).map(show)).toEqual([]);
  });

  it("import only from themselves and from those below", () => {
    const isUpwards = ({ from, to, isType }: Import): boolean => {
      if (isType && TYPES_FROM_ABOVE.has(to) && folderOf(from) === "routes") return false;
      const [below, above] = [ORDER.indexOf(folderOf(to)), ORDER.indexOf(folderOf(from))];
      return above >= 0 && !to.startsWith("..") && (below < 0 || below > above);
    };
    expect(imports.filter(isUpwards).map(show)).toEqual([]);
  });

  it("have no cycles among their files", () => {
    expect(cyclesIn(imports)).toEqual([]);
  });

  it("keep the emulator's models pure: they import themselves and lib only", () => {
    const isForeign = ({ from, to }: Import) =>
      from.startsWith("emulator/models/") && !to.startsWith("emulator/models/") && !to.startsWith("lib/");
    expect(imports.filter(isForeign).map(show)).toEqual([]);
  });
});

describe("programs", () => {
  it("import only what runs in Node", () => {
    const isForeign = ({ to }: Import) =>
      !FOR_PROGRAMS.some((allowed) => to.startsWith(allowed)) && !to.startsWith("..");
    expect(
      imports
        .filter(({ from }) => isIn("programs")(from))
        .filter(isForeign)
        .map(show),
    ).toEqual([]);
  });

  it("reach no module of workerd, over any number of imports", () => {
    const reached = new Set(sources.filter(isIn("programs")));
    for (const file of reached)
      for (const { from, to, isType } of imports) if (from === file && !isType && !to.startsWith("..")) reached.add(to);
    const needsWorkerd = (file: string) =>
      /from "cloudflare:|argon2-wasm/.test(readFileSync(join(SRC, file), "utf8").replace(/^import type.*$/gm, ""));
    expect([...reached].filter((file) => file.endsWith(".ts")).filter(needsWorkerd)).toEqual([]);
  });
});

describe("the dashboard", () => {
  it("imports from schemas only, and its build from the gazetteer", () => {
    const isForeign = ({ from, to }: Import) =>
      isIn("dashboard")(from) &&
      !isIn("dashboard")(to) &&
      !to.startsWith("schemas/") &&
      !(from === "dashboard/vite.config.ts" && to.startsWith("programs/gazetteer/"));
    expect(imports.filter(isForeign).map(show)).toEqual([]);
  });
});

/** Returns the files of every group that imports itself in a circle. Types count too: they are the same knowledge. */
function cyclesIn(edges: readonly Import[]): string[][] {
  const targets = Map.groupBy(edges, ({ from }) => from);
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const cycles: string[][] = [];
  const visit = (file: string): number => {
    const known = index.get(file);
    if (known !== undefined) return stack.includes(file) ? known : Number.POSITIVE_INFINITY;
    const own = index.size;
    index.set(file, own);
    low.set(file, own);
    stack.push(file);
    for (const { to } of targets.get(file) ?? []) low.set(file, Math.min(low.get(file) ?? own, visit(to)));
    const lowest = low.get(file) ?? own;
    if (lowest === own) {
      const group = stack.splice(stack.indexOf(file));
      if (group.length > 1) cycles.push(group);
    }
    return lowest;
  };
  for (const file of targets.keys()) visit(file);
  return cycles;
}

describe("docs/monitoring.md", () => {
  it("lists exactly the log messages of the service", () => {
    const logged = sources
      .filter((file) => !/^(programs|dashboard)\//.test(file))
      .flatMap((file) => [...readFileSync(join(SRC, file), "utf8").matchAll(/log\.(?:info|warn|error)\(\s*"([^"]+)"/g)])
      .map(([, message]) => message);
    const [, section = ""] = /^### Messages$(.*)/ms.exec(readFileSync(join(ROOT, "docs/monitoring.md"), "utf8")) ?? [];
    const firstCells = [...section.matchAll(/^\| ([^|]*) \|/gm)].map(([, cell = ""]) => cell);
    const listed = firstCells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, message]) => message));
    expect(listed.toSorted()).toEqual([...new Set(logged)].toSorted());
  });
});
