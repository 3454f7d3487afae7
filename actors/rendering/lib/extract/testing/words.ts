/** Counts the words that a conversion keeps, to measure the quality of Markdown. */
import { HtmlRenderer, Parser as MarkdownParser } from "commonmark";
import { Parser } from "htmlparser2";

const UNSEEN = new Set(["script", "style", "template", "noscript", "title", "textarea"]);
const INLINE = /^(a|b|i|em|strong|span|code|del|s|sub|sup|small|u)$/;

/** Converts Markdown to HTML with the reference implementation of CommonMark. */
export function readBack(text: string): string {
  return new HtmlRenderer().render(new MarkdownParser().parse(text));
}

/** Returns the visible words of HTML, with the number of their occurrences. */
export function wordsSeen(html: string): Map<string, number> {
  let text = "";
  let unseen = 0;
  const parser = new Parser({
    onopentagname(name) {
      if (UNSEEN.has(name)) unseen += 1;
      if (!INLINE.test(name)) text += " ";
    },
    ontext(part) {
      if (unseen === 0) text += part;
    },
    onclosetag(name) {
      if (UNSEEN.has(name)) unseen -= 1;
      if (!INLINE.test(name)) text += " ";
    },
  });
  parser.end(html);
  return wordsOf(text);
}

export function wordsOf(text: string): Map<string, number> {
  const words = new Map<string, number>();
  for (const [word] of text.normalize("NFKC").matchAll(/[\p{L}\p{N}]+/gu))
    words.set(word, (words.get(word) ?? 0) + 1);
  return words;
}

/** Returns how many of the words also occur in `among`, and the number of all words. */
export function kept(
  words: Map<string, number>,
  among: Map<string, number>,
): [of: number, all: number] {
  let of = 0;
  let all = 0;
  for (const [word, count] of words) {
    all += count;
    of += Math.min(count, among.get(word) ?? 0);
  }
  return [of, all];
}
