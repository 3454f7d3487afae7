/** A button that makes one request, and shows its outcome. */
import { useState } from "preact/hooks";
import { ask, RestError, type RestRequest } from "../lib/rest.ts";

interface ActProps {
  request: RestRequest;
  label: string;
  /** Shown once the request has succeeded. */
  said: string;
  isDisabled?: boolean;
  done: () => void;
}

export function ActButton({ request, label, said: success, isDisabled, done }: ActProps) {
  const [said, setSaid] = useState("");
  const act = async () => {
    try {
      await ask(request);
      setSaid(success);
      done();
    } catch (error) {
      setSaid(error instanceof RestError ? error.message : String(error));
    }
  };
  return (
    <>
      <span class={said ? "quiet" : "hidden"} role="status">
        {said}
      </span>{" "}
      <button type="button" class="small second" disabled={isDisabled} onClick={act}>
        {label}
      </button>
    </>
  );
}
