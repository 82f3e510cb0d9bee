import "./harness/smoke/smoke-command.ts";
