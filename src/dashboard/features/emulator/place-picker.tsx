import { useId, useRef, useState } from "preact/hooks";
import { controlProps, Field } from "../../components/form.tsx";
import { LIMITS } from "./draft.ts";
import { usePlaceSuggestions } from "./use-place-suggestions.ts";

/**
 * Selects places with suggestions and shows them as chips. Follows the combobox pattern of the ARIA Authoring Practices. Accepts any
 * text, because coordinates and plus codes are places as well.
 */
export function PlacePicker({
  places,
  onPlaces,
  error,
  placeErrors,
}: {
  places: readonly string[];
  onPlaces(places: readonly string[]): void;
  error: string | undefined;
  placeErrors: ReadonlyMap<string, string>;
}) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [isClosed, setIsClosed] = useState(false);
  const [active, setActive] = useState(-1);
  const suggestions = usePlaceSuggestions(text.trim());
  const options = suggestions.filter(({ location }) => !places.includes(location));
  const isOpen = !isClosed && text.trim() !== "" && options.length > 0;

  const type = (typed: string) => {
    setText(typed);
    setActive(-1);
    setIsClosed(false);
  };
  const add = (...texts: string[]) => {
    const named = texts.map((one) => one.trim()).filter((one) => one !== "");
    onPlaces([...new Set([...places, ...named])].slice(0, LIMITS.places));
    type("");
  };
  const remove = (place: string) => {
    onPlaces(places.filter((other) => other !== place));
    input.current?.focus();
  };
  const step = (by: 1 | -1) => {
    if (isClosed) return setIsClosed(false);
    // The text field itself, at -1, follows the last option and precedes the first.
    const count = options.length + 1;
    setActive(((active + 1 + by + count) % count) - 1);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") step(event.key === "ArrowDown" ? 1 : -1);
    else if (event.key === "Enter" && text.trim() !== "") add((isOpen && options[active]?.location) || text);
    else if (event.key === "Escape" && text !== "") isOpen ? setIsClosed(true) : type("");
    else if (event.key === "Backspace" && text === "" && places.length > 0) return onPlaces(places.slice(0, -1));
    else return;
    event.preventDefault();
  };
  const onPaste = (event: ClipboardEvent) => {
    const lines = event.clipboardData?.getData("text").split(/[\r\n]+/) ?? [];
    if (lines.length < 2) return;
    event.preventDefault();
    add(...lines);
  };

  return (
    <Field id={id} label="Places" hint={HINT} error={error}>
      <div class="places">
        {places.length > 0 && (
          <ul class="chosen-places" aria-label="Chosen places">
            {places.map((place) => (
              <li key={place} class={placeErrors.has(place) ? "chip invalid" : "chip"}>
                <span>{place}</span>
                <button type="button" aria-label={`Remove ${place}`} onClick={() => remove(place)}>
                  ✕
                </button>
              </li>
            ))}
          </ul>
        )}
        <div class="combobox">
          <input
            {...controlProps(id, HINT, error)}
            ref={input}
            type="text"
            role="combobox"
            autocomplete="off"
            placeholder={places.length === 0 ? "Town or coordinates" : "Add another place"}
            required={places.length === 0}
            aria-autocomplete="list"
            aria-expanded={isOpen}
            aria-controls={`${id}-options`}
            aria-activedescendant={isOpen && active >= 0 ? `${id}-option-${active}` : undefined}
            value={text}
            onInput={({ currentTarget }) => type(currentTarget.value)}
            onKeyDown={onKeyDown}
            onPaste={onPaste}
            // Add a text that was typed but not confirmed with Enter.
            onBlur={() => text.trim() !== "" && add(text)}
          />
          <div id={`${id}-options`} role="listbox" aria-label="Suggested places" hidden={!isOpen}>
            {options.map(({ name, country, latitude, longitude, location }, i) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the focus stays in the text field, which handles the keys.
              <div
                key={location}
                id={`${id}-option-${i}`}
                role="option"
                tabIndex={-1}
                aria-selected={i === active}
                // Keep the focus in the text field.
                onMouseDown={(event) => event.preventDefault()}
                onClick={() => add(location)}
              >
                {name}, {country}{" "}
                <span class="soft">
                  {latitude.toFixed(2)}, {longitude.toFixed(2)}
                </span>
              </div>
            ))}
          </div>
        </div>
      </div>
    </Field>
  );
}

const HINT =
  "Towns, coordinates such as 51.45,-2.59, or plus codes. Press Enter to add a place. The access points are spread over all places.";
