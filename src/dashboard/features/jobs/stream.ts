import { useEffect, useRef, useState } from "preact/hooks";
import { JobSocket, type SocketState } from "../../api/job-socket.ts";
import { Received, type StreamView } from "./received.ts";
import type { RowStore } from "./row-store.ts";

/** A job's stream, as its page shows it. */
export interface JobStream {
  view: StreamView;
  socket: SocketState;
  /** What is received is not sent again. */
  isTaking: boolean;
  take(): void;
  store: RowStore;
}

/** Often enough to look alive, whatever comes in between. */
const SHOW_MS = 250;
const CONNECTING: SocketState = { state: "connecting" };

/** Listens to a job while the component is there. For one that says much: what is shown is a view of it, a few times a second. */
export function useJobStream(jobNumber: string, takesFromTheStart: boolean): JobStream {
  const received = useRef(new Received());
  const listening = useRef<JobSocket>(undefined);
  const [view, setView] = useState<StreamView>(() => received.current.view(Date.now()));
  const [socket, setSocket] = useState(CONNECTING);
  const [isTaking, setIsTaking] = useState(takesFromTheStart);

  useEffect(() => {
    const all = new Received();
    received.current = all;
    const show = () => setView(all.view(Date.now()));
    const job = new JobSocket(jobNumber, {
      message(message, text) {
        all.take(message, text);
        // The rest stays with the service, for a reader that has the room.
        if (all.isFull) job.end();
      },
      state(state) {
        show();
        setSocket(state);
      },
    });
    listening.current = job;
    setIsTaking(takesFromTheStart);
    if (takesFromTheStart) job.acknowledge();
    const showing = setInterval(show, SHOW_MS);
    return () => {
      clearInterval(showing);
      job.end();
    };
  }, [jobNumber]);

  const take = () => {
    setIsTaking(true);
    listening.current?.acknowledge();
  };
  return { view, socket, isTaking, take, store: received.current.store };
}
