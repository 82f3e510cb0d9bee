import "./harness/smoke/main.ts";
