import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Failed, Loading } from "../../components/states.tsx";

type Charts = ComponentType<{ selector: string; title: string }>;

/** Loads the charts when the rest of the page is ready: their code is large. */
export function LazyCharts({ selector, isReady }: { selector: string; isReady: boolean }) {
  const [loaded, setLoaded] = useState<Charts>();
  const [error, setError] = useState<Error>();
  const load = () => {
    setError(undefined);
    import("./selection-charts.tsx").then(
      ({ SelectionCharts }) => setLoaded(() => SelectionCharts),
      () => setError(new Error("The charts could not be loaded. Check the network connection, then try again.")),
    );
  };
  useEffect(() => {
    if (isReady) load();
  }, [isReady]);
  const Component = loaded;
  if (Component !== undefined)
    return <Component selector={selector} title={selector === "" ? "of all access points" : `of ${selector}`} />;
  return (
    <div class="card">{error === undefined ? <Loading lines={6} /> : <Failed error={error} onRetry={load} />}</div>
  );
}
