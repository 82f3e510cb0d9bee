import "./harness/capacity/main.ts";
