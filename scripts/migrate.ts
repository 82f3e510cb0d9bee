import "./ops/migrate.ts";
