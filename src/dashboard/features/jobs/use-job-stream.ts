import { useEffect, useRef, useState } from "preact/hooks";
import { JobSocket, type SocketState } from "../../api/job-socket.ts";
import { ReceivedMessages, type StreamView } from "./received-messages.ts";
import type { RowStore } from "./row-store.ts";

/** The stream of a job, for its page. */
export interface JobStream {
  view: StreamView;
  socket: SocketState;
  /** Whether the page acknowledges messages. The service does not send acknowledged messages to other readers. */
  isReceivingAll: boolean;
  receiveAll(): void;
  store: RowStore;
}

/** How often the page updates its view, regardless of how many messages arrive. */
const VIEW_INTERVAL_MS = 250;
const CONNECTING: SocketState = { state: "connecting" };

/** Listens to a job while the component is mounted. Suits jobs with many messages: it updates a view a few times a second. */
export function useJobStream(jobNumber: string, receivesAll: boolean): JobStream {
  const received = useRef(new ReceivedMessages());
  const listening = useRef<JobSocket>(undefined);
  const [view, setView] = useState<StreamView>(() => received.current.view(Date.now()));
  const [socket, setSocket] = useState(CONNECTING);
  const [isReceivingAll, setIsReceivingAll] = useState(receivesAll);

  useEffect(() => {
    const messages = new ReceivedMessages();
    received.current = messages;
    const show = () => setView(messages.view(Date.now()));
    const job = new JobSocket(jobNumber, {
      message(message, text) {
        messages.add(message, text);
        // The service keeps the rest for a reader with more room.
        if (messages.isFull) job.end();
      },
      state(state) {
        show();
        setSocket(state);
      },
    });
    listening.current = job;
    setIsReceivingAll(receivesAll);
    if (receivesAll) job.acknowledge();
    const updating = setInterval(show, VIEW_INTERVAL_MS);
    return () => {
      clearInterval(updating);
      job.end();
    };
  }, [jobNumber]);

  const receiveAll = () => {
    setIsReceivingAll(true);
    listening.current?.acknowledge();
  };
  return { view, socket, isReceivingAll, receiveAll, store: received.current.store };
}
