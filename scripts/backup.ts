import "./ops/backup/main.ts";
