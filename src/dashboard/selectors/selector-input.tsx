import { useEffect, useId, useRef, useState } from "preact/hooks";
import { controlProps } from "../components/form.tsx";
import { type Completion, completionAt } from "./completion.ts";
import { problemIn } from "./selector-text.ts";
import { refreshVocabulary, vocabulary } from "./vocabulary.ts";

export interface SelectorInputProps {
  id: string;
  value: string;
  onValue(value: string): void;
  /** Called with Enter, if the selector is valid. Without it, Enter submits the form. */
  onCommit?: ((value: string) => void) | undefined;
  /** An error of the service. */
  error?: string | undefined;
  hint?: string | undefined;
  /** The field's name, if it has no label element. */
  label?: string | undefined;
  placeholder?: string;
  autofocus?: boolean;
  required?: boolean;
}

const NOTHING: Completion = { from: 0, to: 0, options: [] };

/** A text field for a selector, with completion and errors. Follows the combobox pattern of the ARIA Authoring Practices. */
export function SelectorInput(props: SelectorInputProps) {
  const { id, value, onValue, onCommit, error, hint, label, placeholder, autofocus, required } = props;
  const input = useRef<HTMLInputElement>(null);
  const list = useId();
  const [isOpen, setIsOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const [completion, setCompletion] = useState(NOTHING);
  const [caret, setCaret] = useState<number>();
  // An unfinished selector is not an error while it is typed. A wrong character is.
  const [isTyping, setIsTyping] = useState(false);
  const problem = problemIn(value);
  const isUnfinished = problem !== undefined && problem.position >= value.trimEnd().length;
  const shownProblem = isTyping && isUnfinished ? undefined : problem;
  const message = shownProblem?.message ?? error;
  const { options } = completion;
  const isShown = isOpen && options.length > 0;

  useEffect(() => input.current?.setCustomValidity(problem?.message ?? ""), [problem?.message]);
  // Completion moves the caret, after the new text has been rendered.
  useEffect(() => {
    if (caret === undefined) return;
    input.current?.setSelectionRange(caret, caret);
    setCaret(undefined);
  }, [caret]);
  // The labels may arrive after the field was opened.
  const words = vocabulary.value;
  useEffect(() => {
    if (isOpen) setCompletion(completionAt(value, input.current?.selectionStart ?? value.length, words));
  }, [words]);

  const suggest = (text: string, at: number) => {
    setCompletion(completionAt(text, at, words));
    setActive(-1);
    setIsOpen(true);
  };
  const choose = (i: number) => {
    const option = options[i];
    if (option === undefined) return;
    const text = value.slice(0, completion.from) + option.insert + value.slice(completion.to);
    const at = completion.from + option.insert.length;
    onValue(text);
    setCaret(at);
    suggest(text, at);
  };
  const commit = () => {
    setIsTyping(false);
    setIsOpen(false);
    if (problem !== undefined) input.current?.setSelectionRange(problem.position, value.length);
    else onCommit?.(value.trim());
  };
  const step = (by: 1 | -1) => {
    if (!isShown) return suggest(value, input.current?.selectionStart ?? value.length);
    // The text field itself, at -1, follows the last option and precedes the first.
    const count = options.length + 1;
    setActive(((active + 1 + by + count) % count) - 1);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") step(event.key === "ArrowDown" ? 1 : -1);
    else if (event.key === "Enter" && isShown && active >= 0) choose(active);
    else if (event.key === "Tab" && isShown && active >= 0) choose(active);
    else if (event.key === "Enter" && (onCommit !== undefined || problem !== undefined)) commit();
    else if (event.key === "Escape" && isShown) setIsOpen(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div class="combobox selector">
      <input
        {...controlProps(id, hint, message)}
        ref={input}
        type="text"
        role="combobox"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        {...{ placeholder, autofocus, required }}
        aria-label={label}
        aria-autocomplete="list"
        aria-expanded={isShown}
        aria-controls={list}
        aria-activedescendant={isShown && active >= 0 ? `${list}-${active}` : undefined}
        value={value}
        // Does not open the list: a dialog gives the focus to its first field.
        onFocus={() => void refreshVocabulary()}
        onClick={({ currentTarget }) => suggest(value, currentTarget.selectionStart ?? value.length)}
        onInput={({ currentTarget }) => {
          setIsTyping(true);
          onValue(currentTarget.value);
          suggest(currentTarget.value, currentTarget.selectionStart ?? currentTarget.value.length);
        }}
        onKeyDown={onKeyDown}
        onBlur={() => {
          setIsTyping(false);
          setIsOpen(false);
        }}
      />
      <div id={list} role="listbox" aria-label="Suggestions" hidden={!isShown}>
        {options.map(({ insert, detail }, i) => (
          <div
            key={insert}
            id={`${list}-${i}`}
            role="option"
            tabIndex={-1}
            aria-selected={i === active}
            // Not `click`: the text field would lose the focus first.
            onMouseDown={(event) => {
              event.preventDefault();
              choose(i);
            }}
          >
            <code>{insert}</code> <span class="soft">{detail}</span>
          </div>
        ))}
      </div>
      {message !== undefined && (
        <p class="field-error" id={`${id}-error`} role="alert">
          {message}
          {shownProblem !== undefined && <Excerpt text={value} position={shownProblem.position} />}
        </p>
      )}
    </div>
  );
}

const EXCERPT_LENGTH = 12;

/** Shows where the error is: the text before it, and the first wrong character. */
function Excerpt({ text, position }: { text: string; position: number }) {
  const from = Math.max(0, position - EXCERPT_LENGTH);
  return (
    <code class="excerpt" aria-hidden="true">
      {from > 0 && "…"}
      {text.slice(from, position)}
      <mark>{text[position] ?? " "}</mark>
      {text.slice(position + 1, position + EXCERPT_LENGTH)}
    </code>
  );
}

/** A selector field with a label, for forms. */
export function SelectorField({ label, hint, ...props }: Omit<SelectorInputProps, "id" | "label"> & { label: string }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <SelectorInput {...props} id={id} hint={hint} />
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}
