/** Shows each value of the configuration, and the whole as JSON for copying. */
export function Configuration({ configuration }: { configuration: Record<string, unknown> }) {
  const leaves = leavesOf(configuration);
  return (
    <section class="card" aria-labelledby="configuration-title">
      <h2 id="configuration-title">Configuration</h2>
      {leaves.length === 0 ? (
        <p class="soft">No configuration yet. An administrator can add one.</p>
      ) : (
        <>
          <dl class="configuration">
            {leaves.slice(0, MAX_SHOWN).map(([name, text]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{text}</dd>
              </div>
            ))}
          </dl>
          {leaves.length > MAX_SHOWN && (
            <p class="soft">{leaves.length - MAX_SHOWN} more values are in the JSON below.</p>
          )}
          <details>
            <summary>Show as JSON</summary>
            {/* It scrolls, so it must be reachable with the keyboard. */}
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: see above */}
            <pre tabIndex={0}>{JSON.stringify(configuration, null, 2)}</pre>
          </details>
        </>
      )}
    </section>
  );
}

/** A configuration can have any number of values. */
const MAX_SHOWN = 60;

/** Returns every value under its full name. Joins a list of plain values into one text. */
function leavesOf(value: unknown, name = ""): [name: string, text: string][] {
  const isList = Array.isArray(value) && value.every((item) => typeof item !== "object" || item === null);
  if (typeof value !== "object" || value === null || isList) {
    const text = isList ? (value as unknown[]).map(String).join(", ") : String(value);
    return [[name, text === "" ? "(empty)" : text]];
  }
  return Object.entries(value).flatMap(([key, inner]) => leavesOf(inner, name === "" ? key : `${name} › ${key}`));
}
