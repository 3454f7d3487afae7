/** Forms: builds fields with label, hint and error message from descriptions, sends the form, and shows refusals. */
import type { ComponentChildren, TargetedInputEvent, TargetedSubmitEvent } from "preact";
import { createContext } from "preact";
import { useContext, useId, useState } from "preact/hooks";
import { asRefusal, type RestError } from "../lib/rest.ts";
import { ErrorNote } from "./note.tsx";
import { Card } from "./page.tsx";

type Value = string | boolean | readonly string[];
type Values<V> = { [Name in keyof V]: Value };

/** The current values of a form, and the function to change them. */
export interface FormState<V> {
  values: V;
  change(changed: Partial<V>): void;
}

export function useForm<V extends Values<V>>(first: V | (() => V)) {
  const [values, setValues] = useState<V>(first);
  const change = (changed: Partial<V>) => setValues((before) => ({ ...before, ...changed }));
  return { values, change, reset: () => setValues(first) };
}

export type Choice = readonly [value: string, label: string, hint?: string];

/**
 * Describes one field. The type of the field's value decides which control is shown. A boolean is a checkbox. A list
 * is a checkbox for each choice. A string is a text field, or a selection if the field has choices or options.
 */
export interface Field<V> {
  name: keyof V & string;
  label: string;
  hint?: ComponentChildren;
  /** JSON pointer of the field in the request, if it differs from the field's name. */
  pointer?: string;
  /** The entries of a drop-down list. */
  options?: readonly Choice[];
  /** The choices that are shown below each other, as radio buttons or checkboxes. */
  choices?: readonly Choice[];
  type?: "text" | "email" | "url" | "number" | "password" | "search";
  required?: boolean;
  /** The number of rows of a text field with several lines. */
  rows?: number;
  placeholder?: string;
  autoFocus?: boolean;
  isCode?: boolean;
  step?: number;
}

interface FieldsProps<V> {
  form: FormState<V>;
  fields: readonly (Field<V> | false | undefined)[];
}

export function Fields<V extends Values<V>>({ form: { values, change }, fields }: FieldsProps<V>) {
  const own = fields.filter((field) => !!field);
  return (
    <>
      {own.map((field) => (
        <OneField
          key={field.name}
          field={field}
          value={values[field.name]}
          onChange={(value) => change({ [field.name]: value } as unknown as Partial<V>)}
        />
      ))}
    </>
  );
}

interface FormProps<V> extends Partial<FieldsProps<V>> {
  /** The label of the submit button. */
  submit: string;
  /** Sends the form. May resolve with a message for the person. */
  onSubmit: () => Promise<string | undefined> | Promise<void>;
  onCancel?: () => void;
  isBad?: boolean;
  isDisabled?: boolean;
  /** Content that is shown below the fields. */
  children?: ComponentChildren;
}

const FaultsContext = createContext<ReadonlyMap<string, string>>(new Map());

/**
 * A form that sends one request at a time. Shows a refusal above the button, and errors of fields beside the fields.
 */
export function Form<V extends Values<V>>(props: FormProps<V>) {
  const { submit, onSubmit, onCancel, isBad, isDisabled, form, fields = [], children } = props;
  const [error, setError] = useState<RestError>();
  const [said, setSaid] = useState("");
  const [isBusy, setBusy] = useState(false);
  const send = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    setSaid("");
    await onSubmit().then(
      (answer) => setSaid(answer ?? ""),
      (thrown: unknown) => setError(asRefusal(thrown)),
    );
    setBusy(false);
  };
  return (
    <FaultsContext.Provider value={error?.fields ?? new Map()}>
      <form onSubmit={send}>
        {form && <Fields form={form} fields={fields} />}
        {children}
        <p class={said ? "" : "hidden"} role="status">
          {said}
        </p>
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

/** A card that holds one form. */
export function FormCard<V extends Values<V>>({
  title,
  ...form
}: FormProps<V> & { title?: string }) {
  return (
    <Card title={title}>
      <Form {...form} />
    </Card>
  );
}

/** Returns the error of a field: of the field's JSON pointer in the request, or of anything below this pointer. */
function useFault(pointer: string): string | undefined {
  const faults = useContext(FaultsContext);
  const own = [...faults].filter(([of]) => of === pointer || of.startsWith(`${pointer}/`));
  if (own.length === 0) return undefined;
  return own.map(([, message]) => message.replace(/^Cannot accept \S+: /, "")).join(" ");
}

/** Returns the ids of the field's hint and error message. Returns undefined if there are none. */
const describedBy = (id: string, hint: ComponentChildren, fault: string | undefined) =>
  [hint ? `${id}-hint` : "", fault ? `${id}-fault` : ""].join(" ").trim() || undefined;

interface OneProps<V> {
  field: Field<V>;
  value: Value;
  onChange: (value: Value) => void;
}

function OneField<V>({ field, value, onChange }: OneProps<V>) {
  const { name, label, hint, pointer = `/${name.replaceAll(".", "/")}`, options, choices } = field;
  const id = useId();
  const fault = useFault(pointer);
  const notes = <Notes id={id} hint={hint} fault={fault} />;
  const described = describedBy(id, hint, fault);
  if (typeof value === "boolean") {
    return <Tick type="checkbox" {...{ label, hint, fault, isOn: value, onChange }} />;
  }
  if (choices) {
    const group = { label, notes, described, choices };
    return <Group {...group} id={id} value={value} onChange={onChange} />;
  }
  const common = {
    id,
    "aria-invalid": fault !== undefined,
    "aria-describedby": described,
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {options ? (
        <select
          {...common}
          value={String(value)}
          onChange={(event) => onChange(event.currentTarget.value)}
        >
          {options.map(([option, text]) => (
            <option key={option} value={option}>
              {text}
            </option>
          ))}
        </select>
      ) : (
        <Text field={field} common={common} value={String(value)} onChange={onChange} />
      )}
      {notes}
    </div>
  );
}

interface TextProps<V> {
  field: Field<V>;
  common: { id: string };
  value: string;
  onChange: (value: string) => void;
}

/** A text field with one line, or with several if `rows` is set. */
function Text<V>({ field, common, value, onChange }: TextProps<V>) {
  const { type = "text", required, rows, placeholder, autoFocus, isCode, step } = field;
  const focus = (element: HTMLElement | null) => {
    if (!autoFocus || !element || element.dataset.focused) return;
    element.dataset.focused = "once";
    element.focus();
  };
  const all = {
    ...common,
    ...{ value, required, placeholder, ref: focus },
    class: isCode ? "code" : "",
    autocomplete: "off" as const,
    spellcheck: isCode ? false : undefined,
    onInput: (event: TargetedInputEvent<HTMLInputElement | HTMLTextAreaElement>) =>
      onChange(event.currentTarget.value),
  };
  // The cast is needed because Preact's types accept only one input type at a time.
  if (rows === undefined) return <input {...all} type={type as "text"} step={step} />;
  return <textarea {...all} rows={rows} />;
}

interface GroupProps {
  id: string;
  label: string;
  notes: ComponentChildren;
  described: string | undefined;
  choices: readonly Choice[];
  /** A list contains any number of the choices. A string is exactly one of them. */
  value: string | readonly string[];
  onChange: (value: Value) => void;
}

function Group({ id, label, notes, described, choices, value, onChange }: GroupProps) {
  const toggle = (one: string, isOn: boolean) => {
    if (typeof value === "string") onChange(one);
    else onChange(isOn ? [...value, one] : value.filter((other) => other !== one));
  };
  return (
    <fieldset aria-describedby={described}>
      <legend>{label}</legend>
      {notes}
      {choices.map(([choice, text, hint]) => (
        <Tick
          key={choice}
          type={typeof value === "string" ? "radio" : "checkbox"}
          name={id}
          label={text}
          hint={hint}
          isOn={typeof value === "string" ? choice === value : value.includes(choice)}
          onChange={(isOn) => toggle(choice, isOn)}
        />
      ))}
    </fieldset>
  );
}

interface TickProps {
  type: "checkbox" | "radio";
  name?: string;
  label: string;
  hint?: ComponentChildren;
  fault?: string | undefined;
  isOn: boolean;
  onChange: (isOn: boolean) => void;
}

/**
 * The accessible name is only the label, and the hint is the description. Otherwise screen readers would read both as
 * the name.
 */
function Tick({ type, name, label, hint, fault, isOn, onChange }: TickProps) {
  const id = useId();
  const described = describedBy(id, hint, fault);
  return (
    <label class="choice">
      <input
        type={type}
        name={name}
        checked={isOn}
        aria-labelledby={`${id}-label`}
        aria-invalid={fault !== undefined}
        aria-describedby={described}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span class="choice-text">
        <span id={`${id}-label`}>{label}</span>
        <Notes id={id} hint={hint} fault={fault} />
      </span>
    </label>
  );
}

interface NotesProps {
  id: string;
  hint: ComponentChildren;
  fault: string | undefined;
}

function Notes({ id, hint, fault }: NotesProps) {
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

/** Returns the lines of a text that are not empty. */
export const linesOf = (text: string) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
