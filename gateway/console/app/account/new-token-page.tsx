/** Makes an API token, and shows its secret this once. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { ask, RestError } from "../lib/rest.ts";
import { Link } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { CreatedToken, PermissionGroup } from "../lib/wire.ts";
import { SecretOnce } from "../parts/copy.tsx";
import { Form, TextField } from "../parts/form.tsx";
import { Card, Page, Read } from "../parts/page.tsx";
import { ExpiryField, expiryOf } from "./expiry-field.tsx";
import { PermissionPicker } from "./permission-picker.tsx";

export function NewTokenPage() {
  const { restPath, placeOf } = useAccount();
  const groups = useRest<PermissionGroup[]>(restPath("/tokens/permission_groups?per_page=50"));
  const [name, setName] = useState("");
  const [days, setDays] = useState("90");
  const [chosen, setChosen] = useState<string[]>([]);
  const [made, setMade] = useState<CreatedToken>();
  const request = {
    method: "POST" as const,
    path: restPath("/tokens"),
    json: { name, policies: [policyOf(chosen)], ...expiryOf(days) },
  };
  const create = async () => {
    checkChosen(chosen);
    setMade((await ask<CreatedToken>(request)).result);
  };
  return (
    <Page
      title="New token"
      above={{ label: "API tokens", to: placeOf("account") }}
      lead="Give a token no more than its program needs."
      request={request}
    >
      {made ? (
        <Card>
          <SecretOnce label="Token" value={made.value} />
          <p>
            <Link to={placeOf(`account/tokens/${made.id}`)}>Go to the token {made.name}</Link>
          </p>
        </Card>
      ) : (
        <Card>
          <Read reading={groups}>
            {(all) => (
              <Form submit="Make the token" onSubmit={create}>
                <TextField
                  label="Name"
                  hint="What the token is for, such as the name of the program"
                  pointer="/name"
                  value={name}
                  onChange={setName}
                  required
                />
                <ExpiryField days={days} onChange={setDays} />
                <PermissionPicker groups={all} chosen={chosen} onChange={setChosen} />
              </Form>
            )}
          </Read>
        </Card>
      )}
    </Page>
  );
}

/** Refuses in the words of the page: a person knows no policies. */
export function checkChosen(permissions: readonly string[]): void {
  if (permissions.length > 0) return;
  throw new RestError(400, [{ message: "Choose at least one permission." }]);
}

export const policyOf = (permissions: readonly string[]) => ({
  effect: "allow",
  permission_groups: permissions.map((id) => ({ id })),
});
