import "./harness/bench/main.ts";
