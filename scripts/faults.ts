import "./harness/faults/main.ts";
