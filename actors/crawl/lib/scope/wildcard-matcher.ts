/**
 * Matches whole texts against `*` (any characters but `/`) and `**` (any characters), in linear time for every
 * pattern.
 */

const BITS = 32;
const SLASH = "/".charCodeAt(0);

/**
 * Compiles a matcher by the algorithm Shift-And (Baeza-Yates and Gonnet 1992). Bit i is set while the text so far
 * matches the first i literals of the pattern. At a star the bit may stay set. Each character of a text costs one
 * step per 32 literals. RE2JS takes 20 to 250 times as long on patterns with many stars, which is too long for an
 * actor's handler.
 */
export function wildcardMatcher(pattern: string): (text: string) => boolean {
  const { literals, stars, anyStars } = readWildcards(pattern);
  const words = Math.floor(literals.length / BITS) + 1;
  const masks = new Map<number, Uint32Array>();
  for (const [index, code] of literals.entries()) {
    const mask = masks.get(code) ?? new Uint32Array(words);
    setBit(mask, index);
    masks.set(code, mask);
  }
  const none = new Uint32Array(words);
  const stay = bitsOf(stars, words);
  const stayOverSlash = bitsOf(anyStars, words);

  return (text) => {
    const states = new Uint32Array(words);
    states[0] = 1;
    for (let index = 0; index < text.length; index += 1) {
      const code = text.charCodeAt(index);
      if (!step(states, masks.get(code) ?? none, code === SLASH ? stayOverSlash : stay))
        return false;
    }
    return hasBit(states, literals.length);
  };
}

/** Advances by one character. Returns false when no match is possible any more. */
function step(states: Uint32Array, mask: Uint32Array, stay: Uint32Array): boolean {
  let carry = 0;
  let alive = 0;
  for (let word = 0; word < states.length; word += 1) {
    const state = states[word] ?? 0;
    const matched = state & (mask[word] ?? 0);
    const next = (matched << 1) | carry | (state & (stay[word] ?? 0));
    carry = matched >>> (BITS - 1);
    states[word] = next;
    alive |= next;
  }
  return alive !== 0;
}

interface Wildcards {
  literals: number[];
  /**
   * Positions of stars, as the number of literals before each star: of all stars, and of those that also match
   * slashes.
   */
  stars: number[];
  anyStars: number[];
}

function readWildcards(pattern: string): Wildcards {
  const wildcards: Wildcards = { literals: [], stars: [], anyStars: [] };
  for (const [part] of pattern.matchAll(/\*+|[^*]+/g)) {
    if (part.startsWith("*")) {
      wildcards.stars.push(wildcards.literals.length);
      if (part.length > 1) wildcards.anyStars.push(wildcards.literals.length);
    } else {
      for (let index = 0; index < part.length; index += 1) {
        wildcards.literals.push(part.charCodeAt(index));
      }
    }
  }
  return wildcards;
}

function bitsOf(indexes: number[], words: number): Uint32Array {
  const bits = new Uint32Array(words);
  for (const index of indexes) setBit(bits, index);
  return bits;
}

function setBit(bits: Uint32Array, index: number): void {
  const word = Math.floor(index / BITS);
  bits[word] = (bits[word] ?? 0) | (1 << (index % BITS));
}

function hasBit(bits: Uint32Array, index: number): boolean {
  return ((bits[Math.floor(index / BITS)] ?? 0) & (1 << (index % BITS))) !== 0;
}
