/** Thrown for one line. Its message continues a sentence about the line. */
export class LineSyntaxError extends Error {}

/** Reads the elements of lines. A newline ends a line, except in a quoted string. */
export class LineReader {
  readonly #text: string;
  #at = 0;
  #line = 0;
  /** Lines before `#counted`. */
  #lines = 1;
  #counted = 0;
  #start = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** The number of the line that `nextLine` has found, from 1. */
  get line(): number {
    return this.#line;
  }

  /** Moves to the next line that is neither empty nor a comment. Returns whether there is one. */
  nextLine(): boolean {
    while (this.#at < this.#text.length) {
      this.takeSpaces();
      if (this.#text[this.#at] === "#") this.#toEndOfLine();
      if (!this.isAtEndOfLine) {
        this.#start = this.#at;
        this.#line = this.#countLines();
        return true;
      }
      this.#at += 1;
    }
    return false;
  }

  /** Moves to the end of the line that `nextLine` has found. */
  skipLine(): void {
    this.#at = this.#start;
    this.#toEndOfLine();
  }

  get isAtEndOfLine(): boolean {
    const char = this.#text[this.#at];
    return char === undefined || char === "\n" || (char === "\r" && (this.#text[this.#at + 1] ?? "\n") === "\n");
  }

  take(char: string): boolean {
    if (this.#text[this.#at] !== char) return false;
    this.#at += 1;
    return true;
  }

  /** Passes spaces. Returns whether there was one. */
  takeSpaces(): boolean {
    const start = this.#at;
    while (this.#text[this.#at] === " ") this.#at += 1;
    return this.#at > start;
  }

  /** Reads up to one of the characters or the end of the line. A backslash before a comma, an equals sign or a space escapes it. */
  text(stops: string): string {
    let text = "";
    while (!this.isAtEndOfLine) {
      const char = this.#text[this.#at] ?? "";
      const next = this.#text[this.#at + 1] ?? "";
      if (stops.includes(char)) break;
      const isEscape = char === "\\" && (next === "," || next === "=" || next === " ");
      text += isEscape ? next : char;
      this.#at += isEscape ? 2 : 1;
    }
    return text;
  }

  /** Reads a string up to its closing quote. A backslash escapes a quote and a backslash. */
  quoted(): string {
    let text = "";
    for (; this.#at < this.#text.length; this.#at += 1) {
      let char = this.#text[this.#at] ?? "";
      const next = this.#text[this.#at + 1];
      if (char === '"') {
        this.#at += 1;
        return text;
      }
      if (char === "\\" && (next === '"' || next === "\\")) {
        char = next;
        this.#at += 1;
      }
      text += char;
    }
    throw new LineSyntaxError("has a string without an end");
  }

  #toEndOfLine(): void {
    const end = this.#text.indexOf("\n", this.#at);
    this.#at = end < 0 ? this.#text.length : end;
  }

  #countLines(): number {
    for (; this.#counted < this.#at; this.#counted += 1) if (this.#text[this.#counted] === "\n") this.#lines += 1;
    return this.#lines;
  }
}
