import "./harness/upgrade/main.ts";
