import { describe, expect, it, vi } from "vitest";
import { helpText, parseCommand } from "../../../src/programs/shared/cli.ts";

const SPEC = {
  name: "npm run example",
  summary: "Counts the access points of a network.",
  options: {
    config: { type: "string", value: "file", description: "Read settings from a file" },
    format: { type: "string", value: "name", description: "Format of the output", default: "text" },
    seconds: { type: "number", value: "n", description: "Duration", default: 5, min: 0.5, max: 600 },
    rows: { type: "number", value: "n", description: "Rows to write", min: 1, max: 10, isInteger: true },
    quick: { type: "boolean", short: "q", description: "Use less data" },
  },
} as const;

describe("parseCommand", () => {
  it("returns the defaults of options that are absent", () => {
    expect(parseCommand(SPEC, [])).toEqual({
      values: { config: undefined, format: "text", seconds: 5, rows: undefined, quick: false },
      positionals: [],
    });
  });

  it("converts the values of options", () => {
    const args = ["--config", "a.conf", "--seconds=0.5", "--rows", "3", "-q"];
    expect(parseCommand(SPEC, args)?.values).toEqual({
      config: "a.conf",
      format: "text",
      seconds: 0.5,
      rows: 3,
      quick: true,
    });
  });

  it("accepts positional arguments only if the command has some", () => {
    expect(parseCommand({ ...SPEC, arguments: "<folder>" }, ["a", "--quick"])?.positionals).toEqual(["a"]);
    expect(() => parseCommand(SPEC, ["a"])).toThrow('Unexpected argument "a". See npm run example -- --help.');
  });

  it.each([
    [["--qiuck"], "Unknown option --qiuck."],
    [["--config"], "--config needs a value."],
    [["--config", "--quick"], "--config needs a value."],
    [["--quick=yes"], "--quick takes no value."],
    [["--seconds", "long"], "--seconds must be a number from 0.5 to 600."],
    [["--seconds", ""], "--seconds must be a number from 0.5 to 600."],
    [["--rows", "1.5"], "--rows must be a whole number from 1 to 10."],
    [["--rows", "11"], "--rows must be a whole number from 1 to 10."],
  ])("rejects %j and names the option", (args, message) => {
    expect(() => parseCommand(SPEC, args)).toThrow(`${message} See npm run example -- --help.`);
  });

  it("prints the help and returns undefined for --help, whatever the other options are", () => {
    const log = vi.spyOn(console, "log").mockReturnValue();
    expect(parseCommand(SPEC, ["--help", "--rows", "0"])).toBeUndefined();
    expect(log).toHaveBeenCalledWith(helpText(SPEC));
    log.mockRestore();
  });
});

describe("helpText", () => {
  it("lists the sections, the options with their defaults, and --help", () => {
    const sections = { Settings: { SERVICE_URL: "URL of the controller" } };
    expect(helpText({ ...SPEC, sections, notes: "See README.md." })).toBe(`Usage: npm run example [-- <options>]

Counts the access points of a network.

Settings:
  SERVICE_URL  URL of the controller

Options:
  --config <file>  Read settings from a file
  --format <name>  Format of the output (default: text)
  --seconds <n>    Duration (default: 5)
  --rows <n>       Rows to write
  -q, --quick      Use less data
  -h, --help       Show this help

See README.md.`);
  });

  it("wraps long paragraphs and descriptions", () => {
    const long = "word ".repeat(40).trim();
    const options = { config: { type: "string", value: "file", description: long } } as const;
    const lines = helpText({ name: "npm run example", summary: `${long}\n\n${long}`, options }).split("\n");
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(110);
    expect(lines.filter((line) => line.startsWith(`${" ".repeat(19)}word`))).toHaveLength(2);
  });
});
