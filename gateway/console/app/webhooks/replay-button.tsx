/** Delivers one event again. */
import { useState } from "preact/hooks";
import { ask, RestError } from "../lib/rest.ts";

interface ReplayProps {
  /** Of the delivery. */
  path: string;
  label: string;
  isDisabled: boolean;
  done: () => void;
}

export function ReplayButton({ path, label, isDisabled, done }: ReplayProps) {
  const [said, setSaid] = useState("");
  const replay = async () => {
    try {
      await ask({ method: "POST", path: `${path}/replay` });
      setSaid("Replayed");
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
      <button type="button" class="small second" disabled={isDisabled} onClick={replay}>
        {label}
      </button>
    </>
  );
}
