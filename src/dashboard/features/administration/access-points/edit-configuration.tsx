import { useState } from "preact/hooks";
import { readAgent, updateAgent } from "../../../api/operations.ts";
import { Dialog } from "../../../components/dialog.tsx";
import { Form, SubmitButton, TextArea } from "../../../components/form.tsx";
import { notify } from "../../../components/notices.tsx";
import { Failed, Loading } from "../../../components/states.tsx";
import { useAction } from "../../../lib/action.ts";
import { useLoaded } from "../../../lib/load.ts";
import { type Configuration, configurationFault, configurationText, readConfiguration } from "./configuration.ts";

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
  const read = readConfiguration(text);
  const { run, isBusy, error } = useAction(async () => {
    if ("fault" in read) return;
    await updateAgent(apId, { configuration: read.value });
    notify(`${apId} is configured.`);
    onDone();
    onClose();
  });
  const refused = configurationFault(error);
  return (
    <Form onSubmit={() => void run()}>
      <TextArea
        label="Configuration (JSON)"
        hint="What is written here replaces the whole of it. The access point may add to it by itself."
        rows={12}
        value={text}
        onValue={setText}
        error={"fault" in read ? read.fault : refused}
      />
      {refused === undefined && <Failed error={error} />}
      <footer>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <SubmitButton isBusy={isBusy}>Save</SubmitButton>
      </footer>
    </Form>
  );
}
