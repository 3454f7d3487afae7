/** Boxes that scroll: of text as it is, and of anything else that is long. */
import type { ComponentChildren } from "preact";

interface ScrollBoxProps {
  label: string;
  class?: string;
  children: ComponentChildren;
}

/** The keyboard reaches it, since nothing in it may be focusable. */
export function ScrollBox({ label, children, ...rest }: ScrollBoxProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without it, nobody scrolls by the keyboard.
    <section class={rest.class ?? "scroll"} aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}

export function CodeBlock({ label, text }: { label: string; text: string }) {
  return (
    <ScrollBox label={`${label}, as text`} class="code-block">
      <pre>{text}</pre>
    </ScrollBox>
  );
}

/** JSON in its usual form; other text stays as it is. */
export function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
