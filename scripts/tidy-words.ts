/** The rule of plain English: finds patterns in comments that hide the subject of a sentence. */
import { isTest, type SourceFile } from "./tidy-files.ts";

/**
 * Beginnings of a comment that are refused: a comment must begin with a verb or with a noun that says what the thing
 * is.
 */
const FRAGMENT = /^(Of|That|Who|Whoever|Whose|Those|Where nobody|What of)\b/;
/** Vague everyday phrases that stand where a noun belongs. */
const VAGUE =
  /\b(what of|whoever|so (many|long)\b(?! as\b)(?![^.]* that\b)|is told|are told|was told|is said|comes to be|goes for good|nobody hears)/i;

/** Reports each comment of production code that begins as a sentence fragment or contains a vague phrase. */
export function commentsAreClear({ path, text }: SourceFile): string[] {
  if (isTest(path)) return [];
  return commentsOf(text)
    .filter(({ words }) => FRAGMENT.test(words) || VAGUE.test(words))
    .map(({ line, words }) => `${path}:${line} ${words}`);
}

interface Comment {
  line: number;
  /** The comment's text on one line, without comment marks. */
  words: string;
}

/** Returns the comments that stand on their own lines. Consecutive `//` lines count as one comment. */
function commentsOf(text: string): Comment[] {
  const comments: Comment[] = [];
  let open: Comment | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    const words = /^\s*(?:\/\*\*?|\*\/?|\/\/)\s?(.*?)\s*(?:\*\/)?\s*$/.exec(line)?.[1];
    const isNew = /^\s*\/\*/.test(line);
    if (words === undefined) open = undefined;
    else if (open && !isNew) open.words = `${open.words} ${words}`.trim();
    else {
      open = { line: index + 1, words };
      comments.push(open);
    }
  }
  return comments;
}
