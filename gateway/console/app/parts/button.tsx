/** Buttons that send requests, download or copy, and values with a copy button. */
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
  /** True for the most important button of its card or form. */
  isMain?: boolean | undefined;
  isDisabled?: boolean | undefined;
  /** True while the started action runs. The button keeps the keyboard focus, which a disabled button would lose. */
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

/**
 * Runs an action, but never twice at the same time. Keeps the error of a failed action until the action starts again.
 */
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
  /** The message that is shown after the request has succeeded. */
  said: string;
  isDisabled?: boolean;
  done: () => void;
}

/** A button that sends one request and shows the outcome beside itself. */
export function ActButton({ request, label, said: success, isDisabled, done }: ActProps) {
  const [said, setSaid] = useState("");
  const { act, isBusy, error } = useAct(async () => {
    setSaid("");
    try {
      await perform(request);
      setSaid(success);
    } finally {
      // Also called after a refusal: the refusal may mean that the shown data is out of date.
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
  /** The file name that the browser saves. */
  name: string;
}

/** Time after which the file's URL is revoked. A browser may begin to save only some time after the click. */
const REVOKE_MS = 60_000;

/** A button that downloads a file of the REST API. A plain link could not send the session's header. */
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

/** A button that copies a text, and announces this visibly and to screen readers. */
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
    // Browsers offer no clipboard on pages over plain http, and some people forbid it.
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  // An open dialog makes everything outside it inert, so the text must be selected inside the dialog.
  const place = document.querySelector("dialog[open]") ?? document.body;
  place.append(area);
  area.select();
  try {
    return document.execCommand("copy");
  } finally {
    area.remove();
  }
}

/** Shows a value with a button that copies it. */
export function Copyable({ value }: { value: string }) {
  return (
    <div class="copyable">
      <code>{value}</code>
      <CopyButton text={value} />
    </div>
  );
}

/** Shows a secret. The platform never shows it again. */
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

/** A button that copies the page's request as a shell command. */
export function CopyAsCurl({ request }: { request: RestRequest }) {
  return <CopyButton text={curlOf(request)} label="Copy as curl" />;
}
