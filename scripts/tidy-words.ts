/** The house rule of plain English: patterns that hide the subject of a sentence. */
import { isTest, type SourceFile } from "./tidy-files.ts";

/** A comment begins with a verb or with a noun that says what the thing is. */
const FRAGMENT = /^(Of|That|Who|Whoever|Whose|Those|Where nobody|What of)\b/;
/** Everyday words in the place of a noun. */
const VAGUE =
  /\b(what of|whoever|so (many|long)\b(?! as\b)(?![^.]* that\b)|is told|are told|was told|is said|comes to be|goes for good|nobody hears)/i;

/** Names each comment of production code that begins as a fragment or holds a vague phrase. */
export function commentsAreClear({ path, text }: SourceFile): string[] {
  if (isTest(path)) return [];
  return commentsOf(text)
    .filter(({ words }) => FRAGMENT.test(words) || VAGUE.test(words))
    .map(({ line, words }) => `${path}:${line} ${words}`);
}

interface Comment {
  line: number;
  /** On one line, without its signs. */
  words: string;
}

/** Comments that stand on lines of their own. Lines of one block, and `//` lines that follow each other, are one. */
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
