import type { Controls, RadioLimits } from "./access-point.ts";

/** The commands that an access point supports. Its configuration lists them; the service does not send others. */
export const COMMANDS = ["power_on", "power_off", "reboot", "set_tx_power", "set_channel"] as const;
type Command = (typeof COMMANDS)[number];

export type CommandOutcome = { controls: Controls; detail: string } | { refused: string };

const RESTART_MS = 8_000;
const ECHO_MAX = 40;

/** Returns the start of a text in printable ASCII, to quote it in an error message. */
const echo = (text: string): string => text.slice(0, ECHO_MAX).replace(/[^ -~]/g, "?");

const isCommand = (name: string): name is Command => COMMANDS.some((known) => known === name);

/** Returns the settings after a command, or the reason why the command is refused. */
export function applyCommand(controls: Controls, command: string, nowMs: number, limits: RadioLimits): CommandOutcome {
  // Words are separated by spaces. A valid command has at most two short words.
  const [name = "", argument, ...more] = command
    .slice(0, 2 * ECHO_MAX)
    .trim()
    .split(/ +/);
  if (!isCommand(name)) return { refused: `unknown command "${echo(name)}"` };
  if (more.length > 0 || command.length > 2 * ECHO_MAX) return { refused: `${name}: too many arguments` };
  const wantsNumber = name === "set_tx_power" || name === "set_channel";
  if (!wantsNumber && argument !== undefined) return { refused: `${name}: takes no argument` };
  if (wantsNumber && argument === undefined) return { refused: `${name}: needs a number` };

  switch (name) {
    case "power_on":
      return { controls: { ...controls, powered: true }, detail: "on" };
    case "power_off":
      return { controls: { ...controls, powered: false, restartUntilMs: 0 }, detail: "off" };
    case "reboot":
      // The access point is on after a restart, even if it was off before.
      return {
        controls: { ...controls, powered: true, restartUntilMs: nowMs + RESTART_MS },
        detail: `restarts, back in ${RESTART_MS / 1_000} s`,
      };
    case "set_tx_power": {
      const { low, high } = limits.txPowerDbm;
      const txPowerDbm = /^[+-]?\d{1,3}(?:\.\d{1,3})?$/.test(argument ?? "") ? Number(argument) : Number.NaN;
      if (!(txPowerDbm >= low && txPowerDbm <= high))
        return { refused: `set_tx_power: must be a number of dBm from ${low} to ${high}` };
      return { controls: { ...controls, txPowerDbm: txPowerDbm + 0 }, detail: `${txPowerDbm} dBm` };
    }
    case "set_channel": {
      const channel = /^\d{1,7}$/.test(argument ?? "") ? Number(argument) : Number.NaN;
      if (!limits.isChannel(channel)) return { refused: `set_channel: must be ${limits.channels}` };
      return { controls: { ...controls, channel }, detail: `channel ${channel}` };
    }
  }
}
