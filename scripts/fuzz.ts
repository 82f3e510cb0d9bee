import "./harness/fuzz/fuzz-command.ts";
