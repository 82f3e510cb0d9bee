import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";

/** Forwards writes of line protocol to the service. Calls `record` with the lines of each request when its outcome is known. */
export async function startRecordingProxy(url: string, record: (lines: string[], isAcknowledged: boolean) => void) {
  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(request);
    const { authorization = "", "content-type": type = "", "content-encoding": encoding } = request.headers;
    const headers = { Authorization: authorization, "Content-Type": type };
    const forwarded = await fetch(new URL(request.url ?? "", url), {
      method: "POST",
      headers: encoding === undefined ? headers : { ...headers, "Content-Encoding": encoding },
      body: Uint8Array.from(body),
    }).catch(() => undefined);
    const responseBody = await forwarded?.text().catch(() => undefined);
    const text = (encoding === "gzip" ? gunzipSync(body) : body).toString();
    record(text.trim().split("\n"), forwarded?.status === 204);
    if (forwarded === undefined || responseBody === undefined) response.destroy();
    else response.writeHead(forwarded.status).end(responseBody);
  };
  const server = createServer((request, response) => void forward(request, response).catch(() => response.destroy()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
