import "./ops/backup/restore-main.ts";
