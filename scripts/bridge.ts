import "../src/programs/bridge/main.ts";
