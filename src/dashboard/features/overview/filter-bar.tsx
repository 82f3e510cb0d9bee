import type { ComponentChildren } from "preact";
import { ConditionMark, technologyColour, technologyLetter } from "../../components/badges.tsx";
import { CONDITIONS, type Counts, type Filters } from "./filters.ts";

/** Shows counts that are also filters. Serves as the legend of the map's colours and letters. */
export function FilterBar({
  counts,
  filters,
  onFilters,
}: {
  counts: Counts | undefined;
  filters: Filters;
  onFilters(filters: Filters): void;
}) {
  const isUnfiltered = filters.type === undefined && filters.state === undefined && filters.text === "";
  return (
    <fieldset class="filter-bar" aria-label="Filter access points">
      <Counter
        count={counts?.all}
        isPressed={isUnfiltered}
        onPress={() => onFilters({ ...filters, type: undefined, state: undefined, text: "" })}
      >
        all
      </Counter>
      {CONDITIONS.map((state) => (
        <Counter
          key={state}
          count={counts?.conditions[state]}
          isPressed={filters.state === state}
          onPress={() => onFilters({ ...filters, state: filters.state === state ? undefined : state })}
        >
          <ConditionMark condition={state} />
        </Counter>
      ))}
      {(counts?.technologies ?? LOADING_TECHNOLOGIES).map(([type, count]) => (
        <Counter
          key={type}
          count={count}
          isPressed={filters.type === type}
          onPress={() => onFilters({ ...filters, type: filters.type === type ? undefined : type })}
        >
          <span class={`technology-dot ${technologyColour(type)}`} aria-hidden="true">
            {technologyLetter(type)}
          </span>
          {type}
        </Counter>
      ))}
      <input
        type="search"
        aria-label="Search by name"
        placeholder="Search by name"
        value={filters.text}
        onInput={({ currentTarget }) => onFilters({ ...filters, text: currentTarget.value })}
      />
    </fieldset>
  );
}

/** Reserve space until the counts have loaded, so that the layout does not jump. */
const LOADING_TECHNOLOGIES = [
  ["5G", undefined],
  ["WiFi", undefined],
  ["LiFi", undefined],
] as const;

function Counter({
  count,
  isPressed,
  onPress,
  children,
}: {
  count: number | undefined;
  isPressed: boolean;
  onPress(): void;
  children: ComponentChildren;
}) {
  return (
    <button type="button" class="counter" aria-pressed={isPressed} onClick={onPress}>
      <strong>{count?.toLocaleString("en") ?? "–"}</strong>
      <span class="counter-name">{children}</span>
    </button>
  );
}
