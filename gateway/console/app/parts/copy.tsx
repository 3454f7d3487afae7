/** Texts that a person takes elsewhere: a button that copies, and a secret that is shown once. */
import { useState } from "preact/hooks";
import { curlOf, type RestRequest } from "../lib/rest.ts";

const SHOWN_MS = 2_000;

/** Copies a text, and says so to everybody. */
export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [state, setState] = useState<"" | "copied" | "failed">("");
  const copy = async () => {
    setState((await copyText(text)) ? "copied" : "failed");
    setTimeout(() => setState(""), SHOWN_MS);
  };
  return (
    <button type="button" class="small second" onClick={copy}>
      <span aria-live="polite">
        {state === "copied" ? "Copied" : state === "failed" ? "Select and copy it by hand" : label}
      </span>
    </button>
  );
}

async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Browsers have no clipboard for plain http, and some people forbid it.
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  // A dialog makes everything outside of it inert.
  const place = document.querySelector("dialog[open]") ?? document.body;
  place.append(area);
  area.select();
  try {
    return document.execCommand("copy");
  } finally {
    area.remove();
  }
}

/** A value with a button that copies it. */
export function Copyable({ label = "Copy", value }: { label?: string; value: string }) {
  return (
    <div class="copyable">
      <code>{value}</code>
      <CopyButton text={value} label={label} />
    </div>
  );
}

/** A secret that the platform shows this once. */
export function SecretOnce({ label, value }: { label: string; value: string }) {
  return (
    <section class="note good" aria-label={label}>
      <p>
        <strong>{label}</strong>: copy it now. It is not shown again.
      </p>
      <Copyable value={value} />
    </section>
  );
}

/** Shows the page's request as a command of a terminal. */
export function CopyAsCurl({ request }: { request: RestRequest }) {
  return <CopyButton text={curlOf(request)} label="Copy as curl" />;
}
