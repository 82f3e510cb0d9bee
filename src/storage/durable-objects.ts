import { Unavailable } from "../lib/errors.ts";

/** What the platform says of a disk that is full, or of a failure of its own, which a full disk becomes as well. */
const ITS_OWN_FAULT = /SQLITE_(FULL|IOERR)|^internal error; reference = /;

/**
 * Calls a Durable Object. The platform marks what may pass: an object that has too much to do, or that is on its way to another
 * place. What is its own fault may pass, too, and whoever comes again with the same finds out what became of it.
 */
export async function callObject<T>(part: string, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    const mayPass =
      error instanceof Error && ("overloaded" in error || "retryable" in error || ITS_OWN_FAULT.test(error.message));
    throw mayPass ? new Unavailable(part, error) : error;
  }
}
