import "../src/programs/emulator/main.ts";
