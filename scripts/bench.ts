import "./harness/bench/bench-command.ts";
