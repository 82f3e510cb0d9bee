import { useMemo } from "preact/hooks";
import type { JobStatus } from "../../schemas/job.ts";
import type { SocketState } from "../api/job-socket.ts";
import { EmulatorProgress } from "../emulator/progress.tsx";
import { countOf, countText, sizeText } from "../parts/size.ts";
import { Empty } from "../parts/states.tsx";
import { Console } from "./console.tsx";
import { isUnderWay } from "./names.ts";
import { ItemCards, RowTable } from "./rows.tsx";
import { SaveButtons } from "./save-buttons.tsx";
import { useJobStream } from "./stream.ts";
import { StreamNotes } from "./stream-notes.tsx";

/** What comes over the job's WebSocket, as it comes. */
export function StreamPanel({ job, takesAll }: { job: JobStatus; takesAll: boolean }) {
  const stream = useJobStream(job.job_number, takesAll);
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
          <Connection socket={socket} isFull={view.isFull} />
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
        <StreamNotes job={job} stream={stream} />
        <SaveButtons jobNumber={job.job_number} store={store} rows={view.rows} />
        {lastItems.length > 0 && cards}
        {lastRows.length > 0 && table}
        {lastRows.length + lastItems.length === 0 && (
          <Empty title={isUnderWay(job.state) ? "Nothing yet" : "Nothing to show"}>
            {isUnderWay(job.state)
              ? "What comes is shown here at once."
              : job.acknowledged_up_to > 0
                ? `${countOf(job.acknowledged_up_to, "message")} of this job went to a reader before, and are not sent again.`
                : "This job has brought no rows."}
          </Empty>
        )}
      </section>
      {messages}
    </>
  );
}

function Connection({ socket, isFull }: { socket: SocketState; isFull: boolean }) {
  return (
    <p class={`connection-state ${isFull ? "held" : socket.state}`} role="status">
      {isFull ? "Full" : connectionText(socket)}
    </p>
  );
}

function connectionText(socket: SocketState): string {
  switch (socket.state) {
    case "connecting":
      return "Connecting…";
    case "open":
      return "Live";
    case "lost":
      return "Connection lost, trying again…";
    case "held":
      return "Waiting for you";
    case "over":
      return `Over: ${socket.reason.charAt(0).toLowerCase()}${socket.reason.slice(1) || "nothing more comes"}`;
  }
}
