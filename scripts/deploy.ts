import { parseCommand, runCommand } from "../src/programs/shared/cli.ts";
import { deploy } from "./ops/deploy/deploy.ts";

await runCommand(async () => {
  const command = parseCommand({
    name: "npm run deploy",
    summary: `Deploys the service to Cloudflare. First checks settings, secrets, stores, broker, migrations and the build. If it finds
      problems, it reports all of them and changes nothing. docs/cloudflare.md is the complete guide.`,
    options: {
      settings: {
        type: "string",
        value: "file",
        description: "Read settings from a file; the environment takes precedence",
      },
      secrets: {
        type: "string",
        value: "folder",
        description:
          "Store the keys of <folder>/secrets.json, generated if missing, and all secret settings in the Worker",
      },
      migrate: {
        type: "boolean",
        description: "Apply missing migrations: additive ones before the deployment, destructive ones after it",
      },
      name: { type: "string", value: "name", description: "Name of the Worker, if it differs from wrangler.toml" },
      domain: { type: "string", value: "domain", description: "Domain of the service, instead of one at workers.dev" },
      smoke: { type: "boolean", description: "Then run npm run smoke on PUBLIC_URL (SMOKE_USERNAME, SMOKE_PASSWORD)" },
      "dry-run": { type: "boolean", description: "Run all checks, including wrangler's dry run, and change nothing" },
    },
    notes: `docs/settings.md lists the settings. --secrets or npx wrangler secret put stores the secret ones (…_TOKEN, …_PASSWORD, …_KEY,
      MAIL_URL); every deployment sets the others.

      wrangler needs a login: npx wrangler login, or CLOUDFLARE_API_TOKEN.`,
  });
  if (command === undefined) return;
  const { settings: settingsFile, secrets: secretsFolder, "dry-run": dryRun, ...others } = command.values;
  await deploy({ settingsFile, secretsFolder, dryRun, ...others });
});
