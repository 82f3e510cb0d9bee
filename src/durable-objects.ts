import { Unavailable } from "./errors.ts";

/**
 * Calls a Durable Object. The platform marks what may pass: an object that has too much to do, or that is on its way to another
 * place.
 */
export async function reachObject<T>(part: string, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    const mayPass = error instanceof Error && ("overloaded" in error || "retryable" in error);
    throw mayPass ? new Unavailable(part, error) : error;
  }
}
