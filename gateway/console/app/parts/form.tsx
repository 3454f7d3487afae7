/** Forms: fields with their label, hint and fault, and a form that sends and shows refusals. */
import type { ComponentChildren, TargetedInputEvent, TargetedSubmitEvent } from "preact";
import { createContext } from "preact";
import { useContext, useId, useState } from "preact/hooks";
import { RestError } from "../lib/rest.ts";
import { ErrorNote } from "./page.tsx";

const FaultsContext = createContext<ReadonlyMap<string, string>>(new Map());

interface FormProps {
  /** The label of the button that sends. */
  submit: string;
  onSubmit: () => Promise<void>;
  onCancel?: () => void;
  isBad?: boolean;
  isDisabled?: boolean;
  children: ComponentChildren;
}

/** Sends once at a time, and shows a refusal above the button and its faults beside their fields. */
export function Form({ submit, onSubmit, onCancel, isBad, isDisabled, children }: FormProps) {
  const [error, setError] = useState<RestError>();
  const [isBusy, setBusy] = useState(false);
  const send = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    try {
      await onSubmit();
    } catch (thrown) {
      setError(
        thrown instanceof RestError ? thrown : new RestError(0, [{ message: String(thrown) }]),
      );
    } finally {
      setBusy(false);
    }
  };
  return (
    <FaultsContext.Provider value={error?.fields ?? new Map()}>
      <form onSubmit={send} noValidate={false}>
        {children}
        {error && <ErrorNote error={error} />}
        <div class="buttons">
          <button type="submit" class={isBad ? "bad" : ""} disabled={isBusy || isDisabled}>
            {isBusy ? "One moment …" : submit}
          </button>
          {onCancel && (
            <button type="button" class="second" onClick={onCancel}>
              Cancel
            </button>
          )}
        </div>
      </form>
    </FaultsContext.Provider>
  );
}

/** The fault of a field, by the JSON pointer of what it becomes in the request; also of its parts. */
function useFault(pointer: string | undefined): string | undefined {
  const faults = useContext(FaultsContext);
  if (pointer === undefined) return undefined;
  const own = [...faults].filter(([of]) => of === pointer || of.startsWith(`${pointer}/`));
  return own.length === 0
    ? undefined
    : own.map(([, message]) => message.replace(/^Cannot accept \S+: /, "")).join(" ");
}

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  /** JSON pointer of the field in the request, such as "/client_name". */
  pointer?: string;
}

interface TextFieldProps extends FieldProps {
  value: string;
  onChange: (value: string) => void;
  type?: "text" | "email" | "url" | "number" | "password" | "datetime-local" | "search";
  required?: boolean;
  /** Several lines. */
  rows?: number;
  placeholder?: string;
  autoFocus?: boolean;
  isCode?: boolean;
  min?: number;
  max?: number;
  step?: number | "any";
}

/** One line of text, or several with `rows`. */
export function TextField(props: TextFieldProps) {
  const {
    label,
    hint,
    pointer,
    value,
    onChange,
    type = "text",
    rows,
    isCode,
    autoFocus,
    ...rest
  } = props;
  const id = useId();
  const fault = useFault(pointer);
  const common = {
    id,
    value,
    ...rest,
    class: isCode ? "code" : "",
    autocomplete: "off" as const,
    spellcheck: isCode ? false : undefined,
    "aria-invalid": fault !== undefined,
    "aria-describedby": describedBy(id, hint, fault),
    onInput: (event: TargetedInputEvent<HTMLInputElement | HTMLTextAreaElement>) =>
      onChange(event.currentTarget.value),
  };
  const focus = (element: HTMLElement | null) => {
    if (autoFocus && element && !element.dataset.focused) {
      element.dataset.focused = "once";
      element.focus();
    }
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {rows === undefined ? (
        // Preact's types want one type of input at a time.
        <input ref={focus} type={type as "text"} {...common} />
      ) : (
        <textarea ref={focus} rows={rows} {...common} />
      )}
      <Described id={id} hint={hint} fault={fault} />
    </div>
  );
}

interface SelectFieldProps extends FieldProps {
  value: string;
  onChange: (value: string) => void;
  options: readonly { value: string; label: string }[];
}

export function SelectField({ label, hint, pointer, value, onChange, options }: SelectFieldProps) {
  const id = useId();
  const fault = useFault(pointer);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={value}
        aria-invalid={fault !== undefined}
        aria-describedby={describedBy(id, hint, fault)}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
      <Described id={id} hint={hint} fault={fault} />
    </div>
  );
}

interface Choice {
  value: string;
  label: string;
  hint?: string;
  isDisabled?: boolean;
}

interface ChoicesProps extends FieldProps {
  choices: readonly Choice[];
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
}

/** Any number of choices. */
export function CheckGroup({ label, hint, pointer, choices, chosen, onChange }: ChoicesProps) {
  const id = useId();
  const fault = useFault(pointer);
  const change = (value: string, isOn: boolean) =>
    onChange(isOn ? [...chosen, value] : chosen.filter((one) => one !== value));
  return (
    <fieldset aria-describedby={describedBy(id, hint, fault)}>
      <legend>{label}</legend>
      <Described id={id} hint={hint} fault={fault} />
      {choices.map((choice) => (
        <Check
          key={choice.value}
          {...choice}
          isOn={chosen.includes(choice.value)}
          onChange={(isOn) => change(choice.value, isOn)}
        />
      ))}
    </fieldset>
  );
}

/** One choice of several. */
export function RadioGroup({
  label,
  hint,
  pointer,
  choices,
  value,
  onChange,
}: FieldProps & { choices: readonly Choice[]; value: string; onChange: (value: string) => void }) {
  const id = useId();
  const fault = useFault(pointer);
  return (
    <fieldset aria-describedby={describedBy(id, hint, fault)}>
      <legend>{label}</legend>
      <Described id={id} hint={hint} fault={fault} />
      {choices.map((choice) => (
        <label key={choice.value} class="choice">
          <input
            type="radio"
            name={id}
            checked={choice.value === value}
            disabled={choice.isDisabled}
            {...namedBy(`${id}-${choice.value}`, choice.hint)}
            onChange={() => onChange(choice.value)}
          />
          <ChoiceText id={`${id}-${choice.value}`} {...choice} />
        </label>
      ))}
    </fieldset>
  );
}

export function Check({
  label,
  hint,
  isOn,
  isDisabled,
  onChange,
}: Omit<Choice, "value"> & { isOn: boolean; onChange: (isOn: boolean) => void }) {
  const id = useId();
  return (
    <label class="choice">
      <input
        type="checkbox"
        checked={isOn}
        disabled={isDisabled}
        {...namedBy(id, hint)}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <ChoiceText id={id} label={label} hint={hint} />
    </label>
  );
}

/** The label is the name, and the hint describes it: else both together are the name. */
const namedBy = (id: string, hint: string | undefined) => ({
  "aria-labelledby": `${id}-label`,
  "aria-describedby": hint && `${id}-hint`,
});

function ChoiceText({ id, label, hint }: { id: string; label: string; hint?: string | undefined }) {
  return (
    <span class="choice-text">
      <span id={`${id}-label`}>{label}</span>
      {hint && (
        <span class="quiet" id={`${id}-hint`}>
          {hint}
        </span>
      )}
    </span>
  );
}

const describedBy = (id: string, hint: unknown, fault: unknown) =>
  [hint ? `${id}-hint` : "", fault ? `${id}-fault` : ""].join(" ").trim() || undefined;

function Described({
  id,
  hint,
  fault,
}: {
  id: string;
  hint: ComponentChildren;
  fault: string | undefined;
}) {
  return (
    <>
      {hint && (
        <span class="quiet hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
      {fault && (
        <span class="fault" id={`${id}-fault`}>
          {fault}
        </span>
      )}
    </>
  );
}
