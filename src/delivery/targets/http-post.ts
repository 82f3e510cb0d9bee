import { isPrivateHost } from "../../lib/private-address.ts";
import { DELIVERED, failed, type Outcome } from "./target.ts";

/** Sends a request. On one machine it is that of a network without private addresses, which checks an address after looking it up. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface PostOptions {
  fetch: Fetch;
  /** Whether addresses of private networks and of this machine are allowed. */
  allowsPrivate: boolean;
}

export interface PostRequest {
  url: string;
  body: string;
  headers: Record<string, string>;
  credentials: string | undefined;
}

/** Posts JSON to a server that an account has named. Any 2xx is a success. */
export type Post = (request: PostRequest, signal: AbortSignal) => Promise<Outcome>;

const MAX_RESPONSE_BYTES = 64 * 1024;
/** How long to read a response whose status is known. A response that was read to its end leaves the connection open for the next one. */
const READ_MS = 200;
const GONE = 410;

export function createPost({ fetch, allowsPrivate }: PostOptions): Post {
  return async ({ url, body, headers, credentials }, signal) => {
    // Stored before the setting was changed.
    if (!allowsPrivate && isPrivateHost(new URL(url).hostname))
      return failed("The address is not on the public internet");
    const response = await fetch(url, {
      method: "POST",
      body,
      headers: {
        "Content-Type": "application/json",
        "User-Agent": "multi-access-network-controller",
        ...headers,
        ...(credentials !== undefined && { Authorization: `Basic ${basic(credentials)}` }),
      },
      // A receiver must not lead the request to another address.
      redirect: "manual",
      signal,
    });
    await discard(response);
    if (response.ok) return DELIVERED;
    if (response.status === GONE) return { ...failed("HTTP 410: the receiver is gone"), isGone: true };
    if (response.status >= 300 && response.status < 400)
      return failed(`HTTP ${response.status}: redirects are not followed`);
    return failed(`HTTP ${response.status}`);
  };
}

/** The bytes of the text in UTF-8, in base64. */
const basic = (credentials: string): string => btoa(String.fromCharCode(...new TextEncoder().encode(credentials)));

/** Reads the start of a response and cancels the rest. Never throws: the status has decided already. */
async function discard({ body }: Response): Promise<void> {
  if (body === null) return;
  const reader = body.getReader();
  const timer = setTimeout(() => void reader.cancel().catch(() => {}), READ_MS);
  try {
    for (let bytes = 0; bytes < MAX_RESPONSE_BYTES; ) {
      const { done, value } = await reader.read();
      if (done) return;
      bytes += value.byteLength;
    }
    await reader.cancel();
  } catch {
    // The receiver closed the connection.
  } finally {
    clearTimeout(timer);
  }
}
