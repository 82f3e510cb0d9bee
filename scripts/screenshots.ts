import "./harness/figures/screenshots.ts";
