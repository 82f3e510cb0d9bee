/**
 * The result of a strict parser of the Prometheus text format. It throws on everything that the format does not allow, and also on
 * errors that Prometheus accepts, such as a histogram that does not add up.
 */
export interface Scraped {
  types: Map<string, string>;
  /** By `name{label="value",…}`, as written. */
  values: Map<string, number>;
}

const HELP = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (?:[^\\]|\\\\|\\n)+$/;
const TYPE = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram)$/;
const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\]|\\\\["\\\\n])*"';
const SAMPLE = new RegExp(
  `^([a-zA-Z_:][a-zA-Z0-9_:]*)(\\{${LABEL}(?:,${LABEL})*\\})? (\\d+(?:\\.\\d+)?(?:e[+-]\\d+)?)$`,
);

export function readExposition(text: string): Scraped {
  if (!text.endsWith("\n")) throw new Error("The last line does not end");
  const types = new Map<string, string>();
  const values = new Map<string, number>();
  let helped: string | undefined;
  let current: string | undefined;
  for (const line of text.slice(0, -1).split("\n")) {
    if (line.startsWith("# HELP")) {
      helped = HELP.exec(line)?.[1];
      if (helped === undefined || types.has(helped)) throw new Error(line);
    } else if (line.startsWith("# TYPE")) {
      const [, name = "", type = ""] = TYPE.exec(line) ?? [];
      if (name === "" || name !== helped || types.has(name)) throw new Error(line);
      if ((type === "counter") !== name.endsWith("_total")) throw new Error(`${name} is a ${type}`);
      types.set(name, type);
      current = name;
    } else {
      const [, name = "", labels = "", value] = SAMPLE.exec(line) ?? [];
      const family = types.get(current ?? "") === "histogram" ? name.replace(/_(?:bucket|sum|count)$/, "") : name;
      const key = `${name}${labels}`;
      if (value === undefined || family !== current || values.has(key)) throw new Error(line);
      values.set(key, Number(value));
    }
  }
  for (const [name, type] of types) if (type === "histogram") checkHistogram(name, values);
  return { types, values };
}

function checkHistogram(name: string, values: ReadonlyMap<string, number>): void {
  const counts = [...values].filter(([key]) => key.startsWith(`${name}_count`));
  for (const [key, count] of counts) {
    const labels = key.slice(`${name}_count`.length).slice(1, -1);
    const buckets = [...values].filter(([bucket]) => bucket.startsWith(`${name}_bucket{${labels},le=`));
    const bounds = buckets.map(([bucket]) => Number(/le="([^"]+)"/.exec(bucket)?.[1]?.replace("+Inf", "Infinity")));
    const isAscending = (numbers: number[]) => numbers.every((number, i) => i === 0 || (numbers[i - 1] ?? 0) <= number);
    if (!isAscending(bounds) || bounds.at(-1) !== Number.POSITIVE_INFINITY) throw new Error(`${key}: ${bounds}`);
    if (!isAscending(buckets.map(([, value]) => value)) || buckets.at(-1)?.[1] !== count) throw new Error(key);
    if (!values.has(`${name}_sum{${labels}}`)) throw new Error(`${key} has no sum`);
  }
}
