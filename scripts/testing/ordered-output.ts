/**
 * Prints what several files write at the same time, a file after the other: the output of one file appears as it comes,
 * that of the others when they have ended or their turn comes.
 */
export class OrderedOutput {
  readonly #print: (text: string) => void;
  readonly #waiting: Entry[] = [];

  constructor(print: (text: string) => void) {
    this.#print = print;
  }

  /** Takes the output of one more file. */
  open(): { write(text: string): void; end(): void } {
    const entry: Entry = { text: "", hasEnded: false };
    this.#waiting.push(entry);
    return {
      write: (text) => {
        entry.text += text;
        this.#flush();
      },
      end: () => {
        entry.hasEnded = true;
        this.#flush();
      },
    };
  }

  #flush(): void {
    for (let head = this.#waiting[0]; head !== undefined; head = this.#waiting[0]) {
      this.#print(head.text);
      head.text = "";
      if (!head.hasEnded) return;
      this.#waiting.shift();
      // Files that ended meanwhile come before the next one that still runs.
      this.#waiting.sort((a, b) => Number(b.hasEnded) - Number(a.hasEnded));
    }
  }
}

interface Entry {
  text: string;
  hasEnded: boolean;
}
