import { helpText, parseCommand, print, runCommand } from "../src/programs/shared/cli.ts";
import { CONFIG_OPTION, loadConfiguration } from "../src/programs/shared/config-file.ts";
import { runAdminCommand } from "./ops/admin.ts";

const SPEC = {
  name: "npm run admin",
  arguments: "<command>",
  summary: `Manages users and keys without the service. Works on the accounts database of the product that runs on this machine (DATA_DIR,
    default .data), or on the one that LIBSQL_URL and LIBSQL_AUTH_TOKEN name.`,
  sections: {
    Commands: {
      "create <e-mail>": "Create an administrator, or with --role user a standard user",
      list: "List all users and their roles",
      "reset-password <e-mail>": "Set a new password and end all logins of the user",
      "promote <e-mail>": "Make a user an administrator",
      "grants <e-mail> [<grant> …]": "Show a user's grants, or replace them: none, operator, viewer:site=uk/*, …",
      "rotate-keys": "Perform the next step of a rotation of the signing keys (docs/accounts.md)",
      "rotate-encryption": "Generate a new ENCRYPTION_KEY and keep the old one (docs/operations.md)",
      reseal: "Encrypt all secrets with the new ENCRYPTION_KEY and remove the old one",
      "rotate-pepper": "Generate a new CREDENTIAL_PEPPER and keep the old one; run again to remove the old one",
    },
  },
  options: {
    role: { type: "string", value: "role", default: "admin", description: "Role of the new user: admin or user" },
    ...CONFIG_OPTION,
  },
  notes: "Passwords are read from the terminal without echo, or from standard input.",
} as const;

await runCommand(async () => {
  const parsed = parseCommand(SPEC);
  if (parsed === undefined) return;
  const { values, positionals } = parsed;
  if (positionals.length === 0) return print(helpText(SPEC));
  loadConfiguration(values.config);
  await runAdminCommand(positionals, values.role);
});
