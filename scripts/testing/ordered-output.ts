/**
 * Prints what several files write at the same time so that it stays readable: the output of one file appears as it
 * comes, that of each other file in one piece when it has ended.
 */
export class OrderedOutput {
  readonly #print: (text: string) => void;
  /** The first one appears as it comes. */
  readonly #open: Entry[] = [];
  /** True when another file was printed since the first one wrote. */
  #isInterrupted = false;

  constructor(print: (text: string) => void) {
    this.#print = print;
  }

  /** Takes the output of one more file. */
  open(file: string): { write(text: string): void; end(): void } {
    const entry: Entry = { file, text: "", hasBegun: false };
    this.#open.push(entry);
    return {
      write: (text) => {
        entry.text += text;
        if (entry === this.#open[0]) this.#printLive(entry);
      },
      end: () => this.#end(entry),
    };
  }

  #end(entry: Entry): void {
    const isLive = entry === this.#open[0];
    if (isLive) this.#printLive(entry);
    else if (entry.text !== "") this.#print(`${entry.file}\n${entry.text}`);
    this.#open.splice(this.#open.indexOf(entry), 1);
    this.#isInterrupted ||= !isLive && entry.text !== "";
    const [next] = this.#open;
    if (isLive && next !== undefined) this.#printLive(next);
  }

  #printLive(entry: Entry): void {
    if (entry.text === "") return;
    if (!entry.hasBegun) this.#print(`${entry.file}\n`);
    else if (this.#isInterrupted) this.#print(`${entry.file} goes on\n`);
    this.#isInterrupted = false;
    entry.hasBegun = true;
    this.#print(entry.text);
    entry.text = "";
  }
}

interface Entry {
  file: string;
  /** Not printed yet. */
  text: string;
  hasBegun: boolean;
}
