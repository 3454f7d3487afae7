/** Shows source text, highlighted once the highlighter has loaded. */
import { useEffect, useState } from "preact/hooks";
import type { HighlightedLine } from "./highlight.ts";
import { Scroll } from "./note.tsx";

/** Maximum number of characters to highlight. A longer text stays plain. */
const HIGHLIGHT_CHARS_MAX = 200_000;
/** Number of lines in one block. Browsers skip the layout of blocks that are not visible. */
const BLOCK_LINES = 100;

interface SourceProps {
  text: string;
  /** The name of a language, or of a file. */
  language?: string | undefined;
  label: string;
  /** True to show line numbers. */
  isNumbered?: boolean;
}

export function SourceText({ text, language, label, isNumbered = false }: SourceProps) {
  const [shown, setShown] = useState<{ of: string; lines: HighlightedLine[] }>();
  useEffect(() => {
    if (!language || text.length > HIGHLIGHT_CHARS_MAX) return;
    let isLeft = false;
    import("./highlight.ts").then(
      ({ highlight }) => {
        const lines = highlight(text, language);
        if (!isLeft && lines) setShown({ of: text, lines });
      },
      () => {
        // The text stays plain.
      },
    );
    return () => {
      isLeft = true;
    };
  }, [text, language]);
  const lines: HighlightedLine[] =
    shown?.of === text ? shown.lines : text.split("\n").map((line) => [{ text: line }]);
  const blocks = Array.from({ length: Math.ceil(lines.length / BLOCK_LINES) }, (_, index) =>
    lines.slice(index * BLOCK_LINES, (index + 1) * BLOCK_LINES),
  );
  return (
    <Scroll label={label}>
      <pre class={isNumbered ? "source numbered" : "source"}>
        {blocks.map((block, index) => (
          <code key={index} class={block.length === BLOCK_LINES ? "block full" : "block"}>
            {block.map((line, at) => (
              <span key={at} class="line" data-line={index * BLOCK_LINES + at + 1}>
                {line.map(({ text: part, kind }, place) =>
                  kind === undefined ? (
                    part
                  ) : (
                    <span key={place} class={`token ${kind}`}>
                      {part}
                    </span>
                  ),
                )}
                {"\n"}
              </span>
            ))}
          </code>
        ))}
      </pre>
    </Scroll>
  );
}
