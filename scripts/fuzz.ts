import "./harness/fuzz/main.ts";
