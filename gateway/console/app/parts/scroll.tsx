/** Content that may be wider than the page and scrolls by itself. */
import type { ComponentChildren } from "preact";

export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without it, nobody can scroll it by keyboard in Safari.
    <section class="scroll" aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
