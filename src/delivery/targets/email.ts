import { type EventLine, eventDigestMessage } from "../../mail/event-digest.ts";
import type { SendMail } from "../../mail/mailer.ts";
import type { NetworkEvent } from "../../schemas/events.ts";
import { DELIVERED, failed, type Target } from "./target.ts";

/** A burst of events becomes one message. */
const GATHER_MS = 20_000;

/** @param mailer sends a message, or says why the settings do not allow it */
export function createEmailTarget(mailer: SendMail | { missing: string }): Target {
  return {
    gatherMs: GATHER_MS,

    async send({ address, name }, messages) {
      if (typeof mailer !== "function") return failed(mailer.missing);
      try {
        await mailer(
          eventDigestMessage(
            address,
            name,
            messages.map(({ event }) => toLine(event)),
          ),
        );
        return DELIVERED;
      } catch {
        return failed("The mail service did not accept the message");
      }
    },
  };
}

function toLine({ time, severity, type, ap_id, actor, data }: NetworkEvent): EventLine {
  const text = typeof data.text === "string" && data.text !== "" ? data.text : undefined;
  return { time, severity, type, about: ap_id ?? actor ?? "", text: text ?? "" };
}
