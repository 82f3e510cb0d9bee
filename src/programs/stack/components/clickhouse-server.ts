/** Runs `clickhouse local` from libchdb. The call blocks until the server ends, so it needs its own process. SIGTERM stops it. */
import { DataType, load, open } from "ffi-rs";

const [library = "", ...args] = process.argv.slice(2);
const argv = ["clickhouse", ...args];

open({ library: "chdb", path: library });
void load({
  library: "chdb",
  funcName: "chdb_query_cmdline",
  retType: DataType.External,
  paramsType: [DataType.I32, DataType.StringArray],
  paramsValue: [argv.length, argv],
});
// The call returns only if the server could not run. By then the server has printed the reason.
process.exit(1);
