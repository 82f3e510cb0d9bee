import { useServiceNowMs } from "../../api/clock.ts";
import { Progress } from "../../components/states.tsx";
import { durationText } from "../../lib/duration.ts";
import { countOf, countText } from "../../lib/format.ts";
import { type JobProgress, progressOf } from "./job-progress.ts";

/** Shows the progress of an emulation. Shows the time left as well if the duration is known. */
export function EmulatorProgress({
  reports,
  durationS,
}: {
  reports: readonly { data: unknown }[];
  durationS?: number | undefined;
}) {
  const progress = progressOf(reports);
  if (progress === undefined) {
    return (
      <div class="progress-of-job">
        <Progress label="Waiting for an emulator" share={undefined} />
        <p class="hint">
          Waiting for an emulator. If this takes long, no emulator is running: start one with{" "}
          <code>npm run emulator</code>.
        </p>
      </div>
    );
  }
  const { started, parts, failed, agents, online, samples, isFinished } = progress;
  return (
    <div class="progress-of-job">
      {isFinished ? (
        <p>Finished. The access points are offline and keep their data.</p>
      ) : (
        <>
          <Progress label="Access points online" share={agents === 0 ? undefined : online / agents} />
          <p class="hint">
            {countText(online)} of {countOf(agents, "access point")} online
            {parts > 1 && `; emulators have started ${started} of ${parts} parts`}
          </p>
          {durationS !== undefined && <TimeLeft progress={progress} durationS={durationS} />}
        </>
      )}
      {failed > 0 && <p class="field-error">{countOf(failed, "part")} failed. See the log of the emulator.</p>}
      <p class="hint">{countOf(samples, "sample")} reported so far.</p>
    </div>
  );
}

function TimeLeft({ progress: { startedMs }, durationS }: { progress: JobProgress; durationS: number }) {
  const nowMs = useServiceNowMs(() => 1_000);
  if (Number.isNaN(startedMs)) return null;
  const elapsedS = Math.min(durationS, Math.max(0, (nowMs - startedMs) / 1_000));
  return (
    <>
      <Progress label="Time elapsed" share={elapsedS / durationS} />
      <p class="hint">
        {durationText(durationS - elapsedS)} left of {durationText(durationS)}
      </p>
    </>
  );
}
