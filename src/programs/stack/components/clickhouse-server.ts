/** Runs libchdb's `clickhouse local`. The call blocks until the server ends, hence a process of its own; SIGTERM ends it. */
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
// It returns only if the server could not run; it has said why by then.
process.exit(1);
