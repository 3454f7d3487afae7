/** Content that may be wider than the page and scrolls by itself. */
import type { ComponentChildren } from "preact";

/** A group and no region: a document may hold many, and regions are where readers jump to. */
export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot scroll in every browser.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without it, nobody can scroll it by keyboard in Safari.
    <div class="scroll" role="group" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}
