import { useId, useState } from "preact/hooks";
import { Field, Form } from "../../components/form.tsx";

interface CommandFormProps {
  isBusy: boolean;
  onSend(command: string): Promise<void>;
}

/** Sends a command that consists of a name and a number. */
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

/** Sends any other command, as typed. */
export function OtherCommand({
  supported,
  isBusy,
  onSend,
}: CommandFormProps & { supported: readonly string[] | undefined }) {
  const id = useId();
  const [command, setCommand] = useState("");
  const text = command.trim();
  const isUnsupported =
    supported !== undefined &&
    text !== "" &&
    !supported.includes(text) &&
    !supported.includes(text.split(" ")[0] ?? "");
  return (
    <Form onSubmit={() => void onSend(text)}>
      <Field
        id={id}
        label="Other command"
        hint={supported === undefined ? "Sent to the access point as typed." : `Supported: ${supported.join(", ")}.`}
        error={isUnsupported ? "The access point does not support this command. Enter a supported one." : undefined}
      >
        <div class="with-button">
          <input
            id={id}
            type="text"
            required
            pattern=".*\S.*"
            maxLength={MAX_LENGTH}
            list={supported === undefined ? undefined : `${id}-names`}
            autocomplete="off"
            spellcheck={false}
            aria-describedby={`${id}-hint`}
            aria-invalid={isUnsupported}
            value={command}
            onInput={({ currentTarget }) => setCommand(currentTarget.value)}
          />
          <button type="submit" disabled={isBusy || isUnsupported}>
            Send command
          </button>
        </div>
      </Field>
      {supported !== undefined && (
        <datalist id={`${id}-names`}>
          {supported.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      )}
    </Form>
  );
}
