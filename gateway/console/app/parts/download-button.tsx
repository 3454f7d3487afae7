/** A button that saves a file of the REST API, and says why it could not. */
import { useState } from "preact/hooks";
import { RestError } from "../lib/rest.ts";
import { saveFile } from "../lib/save-file.ts";
import { ErrorNote } from "./page.tsx";

interface DownloadProps {
  label: string;
  /** Below /v4. */
  path: string;
  /** The name of the file on the person's machine. */
  name: string;
}

export function DownloadButton({ label, path, name }: DownloadProps) {
  const [error, setError] = useState<RestError>();
  const save = async () => {
    setError(undefined);
    try {
      await saveFile(path, name);
    } catch (thrown) {
      if (!(thrown instanceof RestError)) throw thrown;
      setError(thrown);
    }
  };
  return (
    <>
      <button type="button" class="small second" onClick={save}>
        {label}
      </button>
      {error && <ErrorNote error={error} />}
    </>
  );
}
