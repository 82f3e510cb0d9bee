/** What is set, value by value, and as it is for those who want to copy it. */
export function Configuration({ configuration }: { configuration: Record<string, unknown> }) {
  const leaves = leavesOf(configuration);
  return (
    <section class="card" aria-labelledby="configuration-title">
      <h2 id="configuration-title">Configuration</h2>
      {leaves.length === 0 ? (
        <p class="soft">Nothing is set.</p>
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
          {leaves.length > MAX_SHOWN && <p class="soft">And {leaves.length - MAX_SHOWN} more, below.</p>}
          <details>
            <summary>As JSON</summary>
            {/* It scrolls: the keyboard must reach it. */}
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: see above */}
            <pre tabIndex={0}>{JSON.stringify(configuration, null, 2)}</pre>
          </details>
        </>
      )}
    </section>
  );
}

/** Its form is free: it may be long. */
const MAX_SHOWN = 60;

/** Every value under its whole name; a list of plain values in one. */
function leavesOf(value: unknown, name = ""): [name: string, text: string][] {
  const isList = Array.isArray(value) && value.every((item) => typeof item !== "object" || item === null);
  if (typeof value !== "object" || value === null || isList) {
    const text = isList ? (value as unknown[]).map(String).join(", ") : String(value);
    return [[name, text === "" ? "(empty)" : text]];
  }
  return Object.entries(value).flatMap(([key, inner]) => leavesOf(inner, name === "" ? key : `${name} › ${key}`));
}
