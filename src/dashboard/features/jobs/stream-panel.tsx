import { useMemo } from "preact/hooks";
import type { JobStatus } from "../../../schemas/job.ts";
import type { SocketState } from "../../api/job-socket.ts";
import { session } from "../../app/session.ts";
import { Empty } from "../../components/states.tsx";
import { countOf, countText, sizeText } from "../../lib/format.ts";
import { EmulatorProgress } from "../emulator/emulator-progress.tsx";
import { Console } from "./console.tsx";
import { DownloadButtons } from "./download-buttons.tsx";
import { isActive } from "./job-text.ts";
import type { StreamView } from "./received-messages.ts";
import { ItemCards, RowTable } from "./row-table.tsx";
import { StreamNotes } from "./stream-notes.tsx";
import { useJobStream } from "./use-job-stream.ts";

/** Shows the messages of the job's WebSocket as they arrive. */
export function StreamPanel({ job, receivesAll }: { job: JobStatus; receivesAll: boolean }) {
  const isOwn = job.owner === `user:${session.value?.username}`;
  // A shared link must not consume the messages of another person's job.
  const stream = useJobStream(job.job_number, receivesAll && isOwn);
  const { view, socket, store } = stream;
  const { lastRows, lastItems, raw } = view;
  // The view changes a few times a second, but usually not these elements.
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
            <dt>Rows received</dt>
            <dd>{countText(view.rows)}</dd>
          </div>
          <div>
            <dt>Rows per second</dt>
            <dd>{countText(view.rowsPerSecond)}</dd>
          </div>
          <div>
            <dt>Size</dt>
            <dd>{sizeText(view.rowsLength)}</dd>
          </div>
        </dl>
        <StreamNotes job={job} isOwn={isOwn} stream={stream} />
        <DownloadButtons jobNumber={job.job_number} store={store} rows={view.rows} />
        {lastItems.length > 0 && cards}
        {lastRows.length > 0 && table}
        {lastRows.length + lastItems.length === 0 && <NoData job={job} />}
      </section>
      {messages}
    </>
  );
}

function NoData({ job: { state, acknowledged_up_to } }: { job: JobStatus }) {
  return (
    <Empty title={isActive(state) ? "No data yet" : "No data"}>
      {acknowledged_up_to > 0 && (
        <p>
          A reader already received {countOf(acknowledged_up_to, "message")} of this job. The service does not send them
          again.
        </p>
      )}
      {isActive(state) && <p>Messages appear here as they arrive.</p>}
    </Empty>
  );
}

function Connection({ socket, view: { isFull, isComplete } }: { socket: SocketState; view: StreamView }) {
  return (
    <p class={`connection-state ${isFull ? "paused" : socket.state}`} role="status">
      {isFull ? "Limit reached" : connectionText(socket, isComplete)}
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
      return "Connection lost. Reconnecting…";
    case "paused":
      return "Paused";
    case "ended":
      return socket.reason === ""
        ? "Closed"
        : `Closed: ${socket.reason.charAt(0).toLowerCase()}${socket.reason.slice(1)}`;
  }
}
