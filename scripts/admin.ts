import "./ops/admin.ts";
