import { useEffect, useState } from "preact/hooks";
import { type JobMessage, JobSocket, type SocketState } from "../api/job-socket.ts";

/** The latest messages of a job, and the state of the connection. */
export interface Job {
  messages: readonly JobMessage[];
  socket: SocketState;
}

const MAX_MESSAGES = 200;
const NO_MESSAGES: Job = { messages: [], socket: { state: "connecting" } };

/**
 * Reads a job's stream while the component is mounted, without acknowledging. Does nothing if the number is undefined. Renders once a
 * frame, since hundreds of messages may arrive in a second. For jobs with few messages; `useJobStream` is for the others.
 */
export function useJob(jobNumber: string | undefined): Job {
  const [job, setJob] = useState<Job>(NO_MESSAGES);

  useEffect(() => {
    setJob(NO_MESSAGES);
    if (jobNumber === undefined) return;
    let current = NO_MESSAGES;
    let frame: number | undefined;
    const change = (next: Job) => {
      current = next;
      frame ??= requestAnimationFrame(() => {
        frame = undefined;
        setJob(current);
      });
    };
    const socket = new JobSocket(jobNumber, {
      message(message) {
        const messages = [...current.messages.slice(-MAX_MESSAGES + 1), message];
        change({ ...current, messages });
      },
      state: (state) => change({ ...current, socket: state }),
    });
    return () => {
      socket.end();
      if (frame !== undefined) cancelAnimationFrame(frame);
    };
  }, [jobNumber]);

  return job;
}
