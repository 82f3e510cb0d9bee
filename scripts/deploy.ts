import "./ops/deploy/main.ts";
