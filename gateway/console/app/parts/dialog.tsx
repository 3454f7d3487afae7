/** Dialogs, which keep the keyboard focus inside until they are closed. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { type Act, perform } from "../lib/rest.ts";
import { Form, useForm } from "./form.tsx";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}

/** A dialog that is open while its component is shown. The Escape key closes it too. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={onClose}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

interface ConfirmProps {
  /** The label of the button that opens the dialog. */
  label: string;
  title: string;
  /** One sentence about the effect of the action. */
  text: ComponentChildren;
  /** A text that the person must type before the button works: the name of the thing to delete. */
  typed?: string;
  /** The request to send, or the function to call, when the person confirms. */
  request: Act;
  /** Called with the result. */
  done: (result: never) => void;
  isDisabled?: boolean;
}

/**
 * A button for a destructive action. It opens a dialog to confirm the action. For some things, the person must also
 * type their name.
 */
export function ConfirmButton(props: ConfirmProps) {
  const { label, title, text, typed, request, done, isDisabled } = props;
  const [isOpen, setOpen] = useState(false);
  const form = useForm({ typed: "" });
  const close = () => {
    setOpen(false);
    form.reset();
  };
  const confirm = async () => {
    const result = await perform(request);
    close();
    done(result as never);
  };
  return (
    <>
      <button type="button" class="small bad" disabled={isDisabled} onClick={() => setOpen(true)}>
        {label}
      </button>
      {isOpen && (
        <Dialog title={title} onClose={close}>
          <p>{text}</p>
          <Form
            submit={label}
            isBad
            isDisabled={typed !== undefined && form.values.typed !== typed}
            onSubmit={confirm}
            onCancel={close}
            form={form}
            fields={[
              typed !== undefined && {
                ...{ name: "typed", label: `Type "${typed}" to confirm`, autoFocus: true },
              },
            ]}
          />
        </Dialog>
      )}
    </>
  );
}
