/** The page of the installation's administrators. */
import { useAccount } from "../lib/account.tsx";
import { ask, post } from "../lib/rest.ts";
import type { WireAdministrator } from "../lib/wire.ts";
import { ConfirmButton } from "../parts/dialog.tsx";
import { FormCard, useForm } from "../parts/form.tsx";
import { TableCard } from "../parts/list.tsx";
import { OperatorPage } from "./operator-page.tsx";

const PATH = "/installation/administrators";

export function AdministratorsPage() {
  const { user } = useAccount();
  return (
    <OperatorPage<WireAdministrator[]> current="operator/administrators" path="administrators">
      {(administrators, reload) => (
        <>
          <TableCard
            title="Administrators"
            rows={administrators}
            keyOf={({ user_id: id }) => id}
            columns={{
              "E-mail address": ({ email }) => email,
              "User id": ({ user_id: id }) => <code>{id}</code>,
            }}
            actions={({ user_id: id, email }) =>
              administrators.length > 1 && (
                <ConfirmButton
                  label={`Remove ${email}`}
                  title={`Remove ${email}?`}
                  text={
                    id === user.id
                      ? "You lose these pages at once."
                      : "They lose these pages. Their accounts stay as they are."
                  }
                  request={{ method: "DELETE", path: `${PATH}/${id}` }}
                  done={reload}
                />
              )
            }
          />
          <Add reload={reload} />
        </>
      )}
    </OperatorPage>
  );
}

function Add({ reload }: { reload: () => void }) {
  const form = useForm({ email: "", user_id: "" });
  const add = async () => {
    await ask(post(PATH, form.values));
    form.reset();
    reload();
  };
  return (
    <FormCard
      title="Add an administrator"
      submit="Add"
      onSubmit={add}
      form={form}
      fields={[
        {
          ...{ name: "email", label: "E-mail address", type: "email", required: true },
          hint: "Of a person who has signed up here. Administrators see and change what concerns all accounts",
        },
        {
          ...{ name: "user_id", label: "User id", isCode: true, required: true },
          hint: "Let the person tell you themselves: they read it under Account, Sessions. Nobody has verified the address, so another person may have signed up with it",
        },
      ]}
    />
  );
}
