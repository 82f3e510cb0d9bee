import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

/**
 * Starts a fake of the Cloudflare API, as far as wrangler uses it for secrets and deployments: tests have no Cloudflare account. They
 * check that the scripts call wrangler correctly and understand its output.
 */
export async function startCloudflareApi() {
  const secrets: Record<string, string> = {};
  let exists = false;
  let uploaded = "";
  const respond = async (request: IncomingMessage): Promise<{ status: number; body: object }> => {
    const body = (await buffer(request)).toString("latin1");
    const path = (request.url ?? "").split("?")[0] ?? "";
    // The path below a Worker. Undefined for any other resource.
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
    void respond(request).then(({ status, body }) => {
      response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    /** The environment for wrangler. */
    env: {
      CLOUDFLARE_API_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/client/v4`,
      CLOUDFLARE_ACCOUNT_ID: "account",
      CLOUDFLARE_API_TOKEN: "token",
    },
    secrets,
    /** The last uploaded Worker, as a multipart form. */
    get uploaded() {
      return uploaded;
    },
    close: () => server.close(),
  };
}
