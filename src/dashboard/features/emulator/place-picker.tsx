import { useId, useRef, useState } from "preact/hooks";
import { controlProps, Field } from "../../components/form.tsx";
import { LIMITS } from "./draft.ts";
import { usePlaces } from "./use-places.ts";

/**
 * Places as chips, with completion: the combobox of the ARIA Authoring Practices. Any text is taken, since coordinates and codes are
 * places as well.
 */
export function PlacePicker({
  places,
  onPlaces,
  error: fault,
  faults,
}: {
  places: readonly string[];
  onPlaces(places: readonly string[]): void;
  error: string | undefined;
  faults: ReadonlyMap<string, string>;
}) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [isClosed, setIsClosed] = useState(false);
  const [active, setActive] = useState(-1);
  const found = usePlaces(text.trim());
  const options = found.filter(({ location }) => !places.includes(location));
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
    // Beyond either end is the text itself, at -1.
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
    <Field id={id} label="Places" hint={HINT} error={fault}>
      <div class="places">
        {places.length > 0 && (
          <ul class="chosen-places" aria-label="Chosen places">
            {places.map((place) => (
              <li key={place} class={faults.has(place) ? "chip invalid" : "chip"}>
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
            {...controlProps(id, HINT, fault)}
            ref={input}
            type="text"
            role="combobox"
            autocomplete="off"
            placeholder={places.length === 0 ? "A town, or coordinates" : "One more"}
            required={places.length === 0}
            aria-autocomplete="list"
            aria-expanded={isOpen}
            aria-controls={`${id}-options`}
            aria-activedescendant={isOpen && active >= 0 ? `${id}-option-${active}` : undefined}
            value={text}
            onInput={({ currentTarget }) => type(currentTarget.value)}
            onKeyDown={onKeyDown}
            onPaste={onPaste}
            // What was typed and left is meant as well.
            onBlur={() => text.trim() !== "" && add(text)}
          />
          <div id={`${id}-options`} role="listbox" aria-label="Places found" hidden={!isOpen}>
            {options.map(({ name, country, latitude, longitude, location }, i) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the focus stays in the text field, whose keys choose.
              <div
                key={location}
                id={`${id}-option-${i}`}
                role="option"
                tabIndex={-1}
                aria-selected={i === active}
                // The text field keeps the focus.
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
  "Towns, coordinates such as 51.45,-2.59, or plus codes. Enter adds one; the access points go through them in turn.";
