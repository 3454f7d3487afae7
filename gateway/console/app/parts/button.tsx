/** Buttons that act, download or copy, and values to copy. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import {
  type Act,
  asRefusal,
  curlOf,
  perform,
  type RestError,
  type RestRequest,
  send,
  whole,
} from "../lib/rest.ts";
import { ErrorNote } from "./note.tsx";

interface ButtonProps {
  children: ComponentChildren;
  onClick: () => void;
  /** The main act of its surroundings. */
  isMain?: boolean | undefined;
  isDisabled?: boolean | undefined;
  /** What it began still runs. It keeps the focus, which a disabled button loses. */
  isBusy?: boolean | undefined;
  label?: string | undefined;
}

export function Button({ children, onClick, isMain, isDisabled, isBusy, label }: ButtonProps) {
  return (
    <button
      type="button"
      class={`small ${isMain ? "" : "second"}`}
      disabled={isDisabled}
      aria-disabled={isBusy}
      aria-label={label}
      onClick={onClick}
    >
      {children}
    </button>
  );
}

/** Does one thing at a time, and keeps why it failed until it is begun again. */
export function useAct(perform: () => Promise<void>) {
  const [error, setError] = useState<RestError>();
  const [isBusy, setBusy] = useState(false);
  const act = async () => {
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    await perform().catch((thrown: unknown) => setError(asRefusal(thrown)));
    setBusy(false);
  };
  return { act, isBusy, error };
}

interface ActProps {
  request: Act;
  label: string;
  /** Shown once the request has succeeded. */
  said: string;
  isDisabled?: boolean;
  done: () => void;
}

/** Makes one request, and shows its outcome beside the button. */
export function ActButton({ request, label, said: success, isDisabled, done }: ActProps) {
  const [said, setSaid] = useState("");
  const { act, isBusy, error } = useAct(async () => {
    setSaid("");
    try {
      await perform(request);
      setSaid(success);
    } finally {
      // What is shown may be older than a refusal.
      done();
    }
  });
  return (
    <>
      <span class={said ? "quiet" : "hidden"} role="status">
        {said}
      </span>{" "}
      <Button onClick={act} isDisabled={isDisabled} isBusy={isBusy}>
        {label}
      </Button>
      {error && <ErrorNote error={error} />}
    </>
  );
}

interface DownloadProps {
  label: string;
  /** Below /v4. */
  path: string;
  /** The name of the file on the person's machine. */
  name: string;
}

/** A browser may begin to save after the turn of the click. */
const REVOKE_MS = 60_000;

/** Saves a file of the REST API. A plain link could not send the header of the session. */
export function DownloadButton({ label, path, name }: DownloadProps) {
  const { act, isBusy, error } = useAct(async () => {
    const response = await send({ path });
    const url = URL.createObjectURL(await whole(response.blob()));
    Object.assign(document.createElement("a"), { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), REVOKE_MS);
  });
  return (
    <>
      <Button onClick={act} isBusy={isBusy}>
        {label}
      </Button>
      {error && <ErrorNote error={error} />}
    </>
  );
}

const SHOWN_MS = 2_000;

/** Copies a text, and says so to everybody. */
export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [outcome, setOutcome] = useState<{ isCopied: boolean }>();
  useEffect(() => {
    if (!outcome) return;
    const timer = setTimeout(() => setOutcome(undefined), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = async () => setOutcome({ isCopied: await copyText(text) });
  const said = outcome?.isCopied ? "Copied" : "Select and copy it by hand";
  return (
    <Button onClick={copy}>
      <span aria-live="polite">{outcome ? said : label}</span>
    </Button>
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
export function Copyable({ value }: { value: string }) {
  return (
    <div class="copyable">
      <code>{value}</code>
      <CopyButton text={value} />
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
