import { useMemo } from "preact/hooks";
import type { JobStatus } from "../../../schemas/job.ts";
import type { SocketState } from "../../api/job-socket.ts";
import { session } from "../../app/session.ts";
import { Empty } from "../../components/states.tsx";
import { countOf, countText, sizeText } from "../../lib/format.ts";
import { EmulatorProgress } from "../emulator/progress.tsx";
import { Console } from "./console.tsx";
import { isUnderWay } from "./names.ts";
import type { StreamView } from "./received.ts";
import { ItemCards, RowTable } from "./rows.tsx";
import { SaveButtons } from "./save-buttons.tsx";
import { useJobStream } from "./stream.ts";
import { StreamNotes } from "./stream-notes.tsx";

/** What comes over the job's WebSocket, as it comes. */
export function StreamPanel({ job, takesAll }: { job: JobStatus; takesAll: boolean }) {
  const isOwn = job.owner === `user:${session.value?.username}`;
  // A link may be passed on; it must not take away what is somebody else's.
  const stream = useJobStream(job.job_number, takesAll && isOwn);
  const { view, socket, store } = stream;
  const { lastRows, lastItems, raw } = view;
  // A few times a second something has changed, though mostly not these.
  const table = useMemo(() => <RowTable rows={lastRows} total={store.count} />, [lastRows]);
  const cards = useMemo(
    () => (job.kind === "emulator" ? <EmulatorProgress reports={lastItems} /> : <ItemCards items={lastItems} />),
    [lastItems],
  );
  const messages = useMemo(() => <Console messages={raw} />, [raw]);
  return (
    <>
      <section class="card stack" aria-labelledby="stream">
        <div class="spread">
          <h2 id="stream">Stream</h2>
          <Connection socket={socket} view={view} />
        </div>
        <dl class="facts">
          <div>
            <dt>Rows here</dt>
            <dd>{countText(view.rows)}</dd>
          </div>
          <div>
            <dt>Rows a second</dt>
            <dd>{countText(view.rowsPerSecond)}</dd>
          </div>
          <div>
            <dt>Size</dt>
            <dd>{sizeText(view.rowsLength)}</dd>
          </div>
        </dl>
        <StreamNotes job={job} isOwn={isOwn} stream={stream} />
        <SaveButtons jobNumber={job.job_number} store={store} rows={view.rows} />
        {lastItems.length > 0 && cards}
        {lastRows.length > 0 && table}
        {lastRows.length + lastItems.length === 0 && <NothingHere job={job} />}
      </section>
      {messages}
    </>
  );
}

function NothingHere({ job: { state, acknowledged_up_to } }: { job: JobStatus }) {
  return (
    <Empty title={isUnderWay(state) ? "Nothing yet" : "Nothing to show"}>
      {acknowledged_up_to > 0 && (
        <p>{countOf(acknowledged_up_to, "message")} of this job went to a reader before, and are not sent again.</p>
      )}
      {isUnderWay(state) && <p>What comes is shown here at once.</p>}
    </Empty>
  );
}

function Connection({ socket, view: { isFull, isComplete } }: { socket: SocketState; view: StreamView }) {
  return (
    <p class={`connection-state ${isFull ? "paused" : socket.state}`} role="status">
      {isFull ? "Full" : connectionText(socket, isComplete)}
    </p>
  );
}

function connectionText(socket: SocketState, isComplete: boolean): string {
  switch (socket.state) {
    case "connecting":
      return "Connecting…";
    case "open":
      return isComplete ? "All received" : "Live";
    case "lost":
      return "Connection lost, trying again…";
    case "paused":
      return "Waiting for you";
    case "ended":
      return `Over: ${socket.reason.charAt(0).toLowerCase()}${socket.reason.slice(1) || "nothing more comes"}`;
  }
}
