import { useId, useState } from "preact/hooks";
import { Field, Form } from "../../components/form.tsx";

interface CommandFormProps {
  isBusy: boolean;
  onSend(command: string): Promise<void>;
}

/** A command with a number behind its name. */
export function NumberCommand({
  label,
  name,
  step,
  min,
  isBusy,
  onSend,
}: CommandFormProps & { label: string; name: string; step: number | "any"; min?: number }) {
  const id = useId();
  const [value, setValue] = useState("");
  return (
    <Form onSubmit={() => void onSend(`${name} ${Number(value)}`)}>
      <Field id={id} label={label}>
        <div class="with-button">
          <input
            id={id}
            type="number"
            required
            step={step}
            {...(min !== undefined && { min })}
            value={value}
            onInput={({ currentTarget }) => setValue(currentTarget.value)}
          />
          <button type="submit" disabled={isBusy} aria-label={`Set ${label}`}>
            Set
          </button>
        </div>
      </Field>
    </Form>
  );
}

const MAX_LENGTH = 256;

/** Any other, as it is written. */
export function OtherCommand({ names, isBusy, onSend }: CommandFormProps & { names: readonly string[] | undefined }) {
  const id = useId();
  const [command, setCommand] = useState("");
  const text = command.trim();
  const isUnknown =
    names !== undefined && text !== "" && !names.includes(text) && !names.includes(text.split(" ")[0] ?? "");
  return (
    <Form onSubmit={() => void onSend(text)}>
      <Field
        id={id}
        label="Another command"
        hint={names === undefined ? "As the access point understands it." : `It knows ${names.join(", ")}.`}
        error={isUnknown ? "It does not know this one." : undefined}
      >
        <div class="with-button">
          <input
            id={id}
            type="text"
            required
            pattern=".*\S.*"
            maxLength={MAX_LENGTH}
            list={names === undefined ? undefined : `${id}-names`}
            autocomplete="off"
            spellcheck={false}
            aria-describedby={`${id}-hint`}
            aria-invalid={isUnknown}
            value={command}
            onInput={({ currentTarget }) => setCommand(currentTarget.value)}
          />
          <button type="submit" disabled={isBusy || isUnknown}>
            Send
          </button>
        </div>
      </Field>
      {names !== undefined && (
        <datalist id={`${id}-names`}>
          {names.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      )}
    </Form>
  );
}
