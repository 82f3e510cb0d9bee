import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findPeerPrograms } from "../../scripts/harness/bench/peer/peer.ts";
import { run } from "../../scripts/harness/product.ts";
import { ROOT } from "../../src/programs/shared/system.ts";

const { missing } = await findPeerPrograms();

/** Runs the suite in a folder of its own, since it writes its figures there. */
async function benchPeer(env: Record<string, string> = {}) {
  const cwd = mkdtempSync(join(tmpdir(), "bench-"));
  try {
    const args = [join(ROOT, "scripts/bench.ts"), "peer", "--quick", "--seconds", "0.2"];
    const result = await run(process.execPath, args, env, "", { cwd });
    const read = () => JSON.parse(readFileSync(join(cwd, "bench-peer.json"), "utf8"));
    return { ...result, figures: result.output.includes("Written to") ? read().figures : [] };
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}

describe("npm run bench -- peer", () => {
  it("is skipped with the command that installs the missing packages", async () => {
    const { code, output, figures } = await benchPeer({ PATH: "/nonexistent" });
    expect(output).toMatch(/Skipped: install Debian's influxdb.*\n {2}apt-get install .*influxdb/);
    expect({ code, figures }).toEqual({ code: 0, figures: [] });
  });

  it.skipIf(missing.length > 0)("compares the product with a Python service", { timeout: 300_000 }, async () => {
    const { code, output, figures } = await benchPeer();
    expect(code, output).toBe(0);
    const compared = figures.flatMap(({ ratio }: { ratio?: { of: string; value: number } }) => ratio ?? []);
    expect(compared).toHaveLength(5);
    for (const { of, value } of compared) {
      expect(of).toBe("the Python service");
      expect(value).toBeGreaterThan(0);
    }
  });
});
