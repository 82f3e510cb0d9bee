import { toIsoTime } from "../../lib/iso-time.ts";
import { DATA_KINDS, type MessageKind, type StoredKind, type StreamFormat } from "../../schemas/stream-protocol.ts";

/** What goes over a job's sockets. `data` is JSON text from end to end: it is stored and sent as it came, and never parsed again. */

export interface StoredMessage {
  seq: number;
  type: StoredKind;
  tsMs: number;
  final: boolean;
  /** JSON text. */
  data: string;
  /** Of `data`, in UTF-8. */
  bytes: number;
}

/** Messages that went before they were acknowledged, both ends included. */
export interface Gap {
  fromSeq: number;
  toSeq: number;
}

/** The text to send; nothing where a socket of this form does not get this message. */
export function encodeMessage(form: StreamFormat, jobNumber: string, message: StoredMessage): string | undefined {
  if (form === "bare") return isBare(message) ? message.data : undefined;
  return compose(jobNumber, message);
}

/**
 * One message in place of all that are missing. It takes no number of its own but that of the last missing one: whoever has read it
 * has read up to there, and goes on from there with `?after=`.
 */
export function encodeGap(
  form: StreamFormat,
  jobNumber: string,
  { fromSeq, toSeq }: Gap,
  nowMs: number,
): string | undefined {
  if (form === "bare") return undefined;
  const data = `[{"from_seq":${fromSeq},"to_seq":${toSeq}}]`;
  return compose(jobNumber, { seq: toSeq, type: "gap", tsMs: nowMs, final: false, data });
}

function isBare({ type, data }: StoredMessage): boolean {
  return DATA_KINDS.some((kind) => kind === type) && /^\s*\[/.test(data);
}

function compose(
  jobNumber: string,
  { seq, type, tsMs, final, data }: Pick<StoredMessage, "seq" | "tsMs" | "final" | "data"> & { type: MessageKind },
): string {
  return `{"job_number":${JSON.stringify(jobNumber)},"seq":${seq},"type":"${type}","ts":"${toIsoTime(tsMs)}","final":${final},"data":${data}}`;
}
