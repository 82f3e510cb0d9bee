import type { LabelsChanged } from "../../../schemas/labels.ts";
import { countOf } from "../../lib/format.ts";

/** Says what a change of labels will do. Screen readers announce it. */
export function ChangePreview({ preview }: { preview: LabelsChanged | undefined }) {
  return (
    <div role="status" class="change-preview">
      {preview !== undefined && (
        <p>
          {preview.agents === 0
            ? "No access points are selected."
            : preview.changed === 0
              ? `${countOf(preview.agents, "access point")} selected. Nothing changes: all of them have these labels already.`
              : `${countOf(preview.agents, "access point")} selected. The labels of ${preview.changed.toLocaleString("en")} will change. Nothing has been changed yet.`}
        </p>
      )}
    </div>
  );
}
