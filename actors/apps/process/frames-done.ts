/** Tracks which frames of a socket were handled. Frames begin in order, but may end in another order. */

export class FramesDone {
  /** All frames up to this number were handled. Some later ones may have been handled too. */
  #upTo: number;
  readonly #later: Set<number>;
  readonly #underWay = new Set<number>();

  constructor(text = "[0]") {
    const [upTo = 0, ...later] = JSON.parse(text) as number[];
    this.#upTo = upTo;
    this.#later = new Set(later);
  }

  /** Begins a frame. Returns false if the frame was handled or is being handled. */
  begin(number: number): boolean {
    if (number <= this.#upTo || this.#later.has(number) || this.#underWay.has(number)) return false;
    // Frames are numbered without gaps. So a previous owner handled the frames before this one, and they changed no
    // data.
    if (this.#underWay.size === 0 && this.#later.size === 0) this.#upTo = number - 1;
    this.#underWay.add(number);
    return true;
  }

  /** Marks the frames before this number as handled, because a previous owner of the agent handled them. */
  settle(before: number): void {
    this.#upTo = Math.max(this.#upTo, before - 1);
    for (const number of this.#later) if (number <= this.#upTo) this.#later.delete(number);
    while (this.#later.delete(this.#upTo + 1)) this.#upTo += 1;
  }

  /** The number of the frame that begins next. */
  get next(): number {
    return Math.max(this.#upTo, ...this.#later, ...this.#underWay) + 1;
  }

  end(number: number): void {
    this.#underWay.delete(number);
    this.#later.add(number);
    while (this.#later.delete(this.#upTo + 1)) this.#upTo += 1;
  }

  toString(): string {
    return JSON.stringify([this.#upTo, ...this.#later]);
  }
}
