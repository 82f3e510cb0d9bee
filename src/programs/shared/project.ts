import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Where things are in this project. */
export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** A command that one of the installed packages brings. */
export const installed = (command: string): string => join(ROOT, "node_modules/.bin", command);
