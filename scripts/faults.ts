import "./harness/faults/faults-command.ts";
