import { useEffect, useState } from "preact/hooks";
import { type JobMessage, JobSocket, type SocketState } from "../api/job-socket.ts";

/** Of a job that is listened to: its last messages, and whether it is still heard. */
export interface Job {
  messages: readonly JobMessage[];
  socket: SocketState;
}

const KEPT_MESSAGES = 200;
const NONE: Job = { messages: [], socket: { state: "connecting" } };

/**
 * Listens to a job while the component is there, and takes nothing away from other readers; nothing without a number. Messages may
 * come by the hundred in a second: they are shown once a frame. For jobs that say little; `useJobStream` is for the others.
 */
export function useJob(jobNumber: string | undefined): Job {
  const [job, setJob] = useState<Job>(NONE);

  useEffect(() => {
    setJob(NONE);
    if (jobNumber === undefined) return;
    let current = NONE;
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
        const messages = [...current.messages.slice(-KEPT_MESSAGES + 1), message];
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
