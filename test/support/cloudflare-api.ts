import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

/**
 * Stands in for Cloudflare's own interface, as far as wrangler asks it for secrets and deploys a Worker: nobody can have an account
 * there for a test. What is tried is that wrangler is called as it wants to be called, and its answers understood.
 */
export async function startCloudflareApi() {
  const secrets: Record<string, string> = {};
  let exists = false;
  let uploaded = "";
  const answerTo = async (request: IncomingMessage): Promise<{ status: number; body: object }> => {
    const body = (await buffer(request)).toString("latin1");
    const path = (request.url ?? "").split("?")[0] ?? "";
    // Of a Worker; of anything else, nothing.
    const resource = /\/workers\/(?:scripts|services)\/[^/]+\/?(.*)$/.exec(path)?.[1];
    const success = (result: unknown) => ({ status: 200, body: { success: true, errors: [], messages: [], result } });
    const writes = request.method === "PUT" || request.method === "POST";
    if (writes && (resource === "" || resource === "versions")) {
      exists = true;
      uploaded = body;
      return success({ id: "version", startup_time_ms: 1, resources: { script: { etag: "tag" } } });
    }
    if (path.endsWith("/zones")) return success([{ id: "zone", name: "example.com" }]);
    if (resource === "domains/changeset") return success({ added: [], removed: [], updated: [], conflicting: [] });
    if (resource === "assets-upload-session") return success({ jwt: "a.b.c", buckets: [] });
    if (!exists && resource !== undefined) {
      const errors = [{ code: path.includes("/services/") ? 10090 : 10007, message: "This Worker does not exist" }];
      return { status: 404, body: { success: false, errors, messages: [], result: null } };
    }
    switch (resource) {
      case "secrets":
        return success(Object.keys(secrets).map((name) => ({ name, type: "secret_text" })));
      case "secrets-bulk": {
        const given = (JSON.parse(body) as { secrets: Record<string, { text: string }> }).secrets;
        for (const [name, { text }] of Object.entries(given)) secrets[name] = text;
        return success({});
      }
      case "deployments":
        return success({ deployments: [{ versions: [{ version_id: "version", percentage: 100 }] }] });
      case "":
        return success({ default_environment: { script: { last_deployed_from: "wrangler", migration_tag: "v3" } } });
      default:
        return success([]);
    }
  };
  const server = createServer((request, response) => {
    void answerTo(request).then(({ status, body }) => {
      response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    /** For wrangler. */
    env: {
      CLOUDFLARE_API_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/client/v4`,
      CLOUDFLARE_ACCOUNT_ID: "account",
      CLOUDFLARE_API_TOKEN: "token",
    },
    secrets,
    /** What came with the Worker: a form of several parts. */
    get uploaded() {
      return uploaded;
    },
    close: () => server.close(),
  };
}
