import "./harness/upgrade/upgrade-command.ts";
