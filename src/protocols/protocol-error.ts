import { DomainError } from "../lib/errors.ts";

/** Rejects input of another system's protocol as a whole. `unsupported`: the sender may retry with another version of the protocol. */
export class ProtocolError extends DomainError {
  constructor(code: "malformed" | "too_large" | "unsupported", message: string) {
    super(code, message);
  }
}

export const malformed = (message: string): ProtocolError => new ProtocolError("malformed", message);
