import "../src/programs/broker/server.ts";
