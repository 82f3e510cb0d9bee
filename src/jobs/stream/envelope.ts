import { asJsonText, encodeJson, type JsonText } from "../../lib/encoding.ts";
import { toIsoTime } from "../../lib/iso-time.ts";
import { DATA_KINDS, type MessageKind, type StoredKind, type StreamFormat } from "../../schemas/stream-protocol.ts";

/** Encodes messages for a job's sockets. Splices `data` into the envelope as text: it is never parsed or encoded again. */

export interface StoredMessage {
  seq: number;
  type: StoredKind;
  tsMs: number;
  final: boolean;
  data: JsonText;
  /** The length of `data` in UTF-8. */
  bytes: number;
}

/** Messages that were dropped before they were acknowledged, both ends included. */
export interface Gap {
  fromSeq: number;
  toSeq: number;
}

/** Returns the text to send, or undefined if sockets of this format do not get the message. */
export function encodeMessage(format: StreamFormat, jobNumber: string, message: StoredMessage): JsonText | undefined {
  if (format === "bare") return isBare(message) ? message.data : undefined;
  return encodeEnvelope(jobNumber, message);
}

/**
 * Returns one message in place of all that are missing. It has the number of the last missing message, so that a reader can acknowledge
 * it or resume after it with `?after=`.
 */
export function encodeGap(
  format: StreamFormat,
  jobNumber: string,
  { fromSeq, toSeq }: Gap,
  nowMs: number,
): JsonText | undefined {
  if (format === "bare") return undefined;
  const data = encodeJson([{ from_seq: fromSeq, to_seq: toSeq }]);
  return encodeEnvelope(jobNumber, { seq: toSeq, type: "gap", tsMs: nowMs, final: false, data });
}

function isBare({ type, data }: StoredMessage): boolean {
  return DATA_KINDS.some((kind) => kind === type) && /^\s*\[/.test(data);
}

function encodeEnvelope(
  jobNumber: string,
  { seq, type, tsMs, final, data }: Pick<StoredMessage, "seq" | "tsMs" | "final" | "data"> & { type: MessageKind },
): JsonText {
  return asJsonText(
    `{"job_number":${encodeJson(jobNumber)},"seq":${seq},"type":"${type}","ts":"${toIsoTime(tsMs)}","final":${final},"data":${data}}`,
  );
}
