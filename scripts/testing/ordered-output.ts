/**
 * Prints the output of several concurrent files in readable order. The output of one file is printed as it arrives.
 * The output of each other file is printed in one piece when that file has ended.
 */
export class OrderedOutput {
  readonly #print: (text: string) => void;
  /** The files that have not ended. The output of the first file is printed as it arrives. */
  readonly #open: Entry[] = [];
  /** True if another file was printed after the latest output of the first file. */
  #isInterrupted = false;

  constructor(print: (text: string) => void) {
    this.#print = print;
  }

  /** Opens the output of another file. */
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
  /** The part of the output that is not printed yet. */
  text: string;
  hasBegun: boolean;
}
