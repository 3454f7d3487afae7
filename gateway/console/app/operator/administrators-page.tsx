/** The administrators of the installation. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { ask } from "../lib/rest.ts";
import type { Reading } from "../lib/use-rest.ts";
import type { WireAdministrator } from "../lib/wire.ts";
import { ConfirmButton } from "../parts/dialog.tsx";
import { Form, TextField } from "../parts/form.tsx";
import { Card } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";
import { OperatorPage } from "./operator-page.tsx";

export function AdministratorsPage() {
  return (
    <OperatorPage<WireAdministrator[]> current="operator/administrators" path="administrators">
      {(administrators, reading) => (
        <>
          <Card title="Administrators">
            <Table
              label="Administrators"
              rows={administrators}
              keyOf={({ user_id: id }) => id}
              columns={[{ name: "E-mail address", cell: ({ email }) => email }]}
              actions={(one) =>
                administrators.length > 1 && <Remove administrator={one} reading={reading} />
              }
            />
          </Card>
          <Add reading={reading} />
        </>
      )}
    </OperatorPage>
  );
}

function Remove({
  administrator: { user_id: id, email },
  reading,
}: {
  administrator: WireAdministrator;
  reading: Reading<WireAdministrator[]>;
}) {
  const { user } = useAccount();
  const remove = async () => {
    await ask({ method: "DELETE", path: `/installation/administrators/${id}` });
    reading.reload();
  };
  return (
    <ConfirmButton
      label={`Remove ${email}`}
      title={`Remove ${email}?`}
      text={
        id === user.id
          ? "You lose these pages at once."
          : "They lose these pages. Their accounts stay as they are."
      }
      onConfirm={remove}
    />
  );
}

function Add({ reading }: { reading: Reading<WireAdministrator[]> }) {
  const [email, setEmail] = useState("");
  const add = async () => {
    await ask({ method: "POST", path: "/installation/administrators", json: { email } });
    setEmail("");
    reading.reload();
  };
  return (
    <Card title="Add an administrator">
      <Form submit="Add" onSubmit={add}>
        <TextField
          label="E-mail address"
          hint="Of a person who has signed up here. Administrators see and change what concerns all accounts"
          pointer="/email"
          type="email"
          value={email}
          onChange={setEmail}
          required
        />
      </Form>
    </Card>
  );
}
