import { LibsqlError } from "@libsql/client/http";
import { sql } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { createDatabaseProbe } from "../../../src/accounts/database-probe.ts";
import { Unavailable } from "../../../src/lib/errors.ts";
import { callObject } from "../../../src/storage/durable-objects.ts";
import { createDatabase, query } from "../../../src/storage/libsql.ts";
import { settings } from "../support.ts";

describe("an error of the accounts database", () => {
  // With a full disk, a libSQL server reports SQLITE_IOERR and SQLite itself SQLITE_FULL.
  it.each(["SQLITE_BUSY", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_IOERR_WRITE", "SQLITE_CANTOPEN", "SQLITE_NOMEM"])(
    "is Unavailable if a retry may succeed: %s",
    async (code) => {
      const failed = Promise.reject(new Error("Failed query", { cause: new LibsqlError("no", code) }));
      await expect(query(failed)).rejects.toThrow(Unavailable);
    },
  );

  it.each(["SQLITE_CONSTRAINT", "SQLITE_ERROR", "SQLITE_CORRUPT"])(
    "is rethrown if a retry cannot succeed: %s",
    async (code) => {
      const failed = Promise.reject(new Error("Failed query", { cause: new LibsqlError("no", code) }));
      await expect(query(failed)).rejects.not.toThrow(Unavailable);
    },
  );
});

describe("an error of a Durable Object", () => {
  it.each(["database or disk is full: SQLITE_FULL", "internal error; reference = dssp1lh4578ngd7k8m3plukd"])(
    "is Unavailable if the platform caused it: %s",
    async (message) => {
      await expect(callObject("job", Promise.reject(new Error(message)))).rejects.toThrow(Unavailable);
    },
  );

  it("is rethrown if the code of the object caused it", async () => {
    await expect(callObject("job", Promise.reject(new TypeError("no")))).rejects.toThrow(TypeError);
  });
});

describe("the probe of the accounts database", () => {
  it("detects within seconds that writes fail, and that they succeed again", async () => {
    const database = createDatabase({ url: settings.EMPTY_LIBSQL_URL ?? "" });
    const clock = { ms: Date.now() };
    const probe = createDatabaseProbe(database, () => clock.ms);
    await probe();
    // Acts like a full disk: every write of the probe fails.
    await database.run(
      sql`create trigger no_room before insert on attempts when new.key = 'readyz' begin select raise(abort, 'no room'); end`,
    );
    try {
      await probe();
      clock.ms += 5_000;
      await expect(probe()).rejects.toThrow();
      await expect(probe()).rejects.toThrow();
    } finally {
      await database.run(sql`drop trigger no_room`);
    }
    await probe();
  });
});
