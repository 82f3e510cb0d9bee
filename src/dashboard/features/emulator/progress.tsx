import { useEffect, useState } from "preact/hooks";
import { serviceNowMs } from "../../api/clock.ts";
import { Progress } from "../../components/states.tsx";
import { durationText } from "../../components/time.tsx";
import { countOf, countText } from "../../lib/format.ts";
import { type JobProgress, progressOf } from "./reports.ts";

/** How far an emulator's job has come; where it is known for how long it runs, also how much is left of that. */
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
        <Progress label="Waiting" share={undefined} />
        <p class="hint">
          Waiting for an emulator to take it. If this lasts, none is running: <code>npm run emulator</code> starts one.
        </p>
      </div>
    );
  }
  const { taken, parts, failed, agents, online, samples, isOver } = progress;
  return (
    <div class="progress-of-job">
      {isOver ? (
        <p>Over. The access points stay, offline, with their data.</p>
      ) : (
        <>
          <Progress label="Access points online" share={agents === 0 ? undefined : online / agents} />
          <p class="hint">
            {countText(online)} of {countOf(agents, "access point")} online
            {parts > 1 && `; ${taken} of ${parts} parts taken by an emulator`}
          </p>
          {durationS !== undefined && <TimeLeft progress={progress} durationS={durationS} />}
        </>
      )}
      {failed > 0 && <p class="field-error">{countOf(failed, "part")} failed.</p>}
      <p class="hint">{countOf(samples, "sample")} reported so far.</p>
    </div>
  );
}

function TimeLeft({ progress: { startedMs }, durationS }: { progress: JobProgress; durationS: number }) {
  const [nowMs, setNowMs] = useState(serviceNowMs);
  useEffect(() => {
    const ticking = setInterval(() => setNowMs(serviceNowMs()), 1_000);
    return () => clearInterval(ticking);
  }, []);
  if (Number.isNaN(startedMs)) return null;
  const goneS = Math.min(durationS, Math.max(0, (nowMs - startedMs) / 1_000));
  return (
    <>
      <Progress label="Time gone" share={goneS / durationS} />
      <p class="hint">
        {durationText(durationS - goneS)} left of {durationText(durationS)}
      </p>
    </>
  );
}
