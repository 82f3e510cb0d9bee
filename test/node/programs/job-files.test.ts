import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { JobFiles } from "../../../src/programs/emulator/job-files.ts";

describe("the emulator's files", () => {
  const part = { job_number: "1", part: 1, parts: 1, emulators: [] };
  const progress = (samples: number) => ({ startedMs: 0, samples, sites: [] });
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "job-files-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it("contain the parts in progress and their state", () => {
    const files = new JobFiles(folder);
    files.save(part, progress(1));
    files.save(part, progress(2));
    const later = new JobFiles(folder);
    expect(later.parts()).toEqual([part]);
    expect(later.progress(part)).toEqual(progress(2));
  });

  it("do not stop a part that cannot be saved, such as on a full disk", () => {
    const files = new JobFiles(folder);
    rmSync(folder, { recursive: true });
    expect(() => files.save(part, progress(1))).not.toThrow();
  });
});
