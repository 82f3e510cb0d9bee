import { useState } from "preact/hooks";
import { readAgent, updateAgent } from "../../../api/operations.ts";
import { Dialog } from "../../../components/dialog.tsx";
import { Form, SubmitButton, TextArea } from "../../../components/form.tsx";
import { notify } from "../../../components/notices.tsx";
import { Failed, Loading } from "../../../components/states.tsx";
import { useAction } from "../../../lib/action.ts";
import { useLoaded } from "../../../lib/load.ts";
import { type Configuration, configurationError, configurationText, parseConfiguration } from "./configuration-text.ts";

interface EditProps {
  apId: string;
  onDone(): void;
  onClose(): void;
}

export function EditConfiguration(props: EditProps) {
  const { data, error, refresh } = useLoaded((signal) => readAgent(props.apId, signal), [props.apId]);
  return (
    <Dialog title={`Configuration of ${props.apId}`} onClose={props.onClose}>
      <Failed error={error} onRetry={refresh} />
      {data !== undefined && <Editor {...props} configuration={data.configuration} />}
      {data === undefined && error === undefined && <Loading lines={9} />}
    </Dialog>
  );
}

function Editor({ apId, configuration, onDone, onClose }: EditProps & { configuration: Configuration }) {
  const [text, setText] = useState(() => configurationText(configuration));
  const parsed = parseConfiguration(text);
  const { run, isBusy, error } = useAction(async () => {
    if ("error" in parsed) return;
    await updateAgent(apId, { configuration: parsed.value });
    notify(`The configuration of ${apId} was saved.`);
    onDone();
    onClose();
  });
  const serviceError = configurationError(error);
  return (
    <Form onSubmit={() => void run()}>
      <TextArea
        label="Configuration (JSON)"
        hint="This replaces the whole configuration. The access point can add values itself."
        rows={12}
        value={text}
        onValue={setText}
        error={"error" in parsed ? parsed.error : serviceError}
      />
      {serviceError === undefined && <Failed error={error} />}
      <footer>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <SubmitButton isBusy={isBusy}>Save configuration</SubmitButton>
      </footer>
    </Form>
  );
}
