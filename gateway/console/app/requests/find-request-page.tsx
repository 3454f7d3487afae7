/** Opens the page with the steps of a request by its id. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { navigate } from "../lib/router.tsx";
import { Form, TextField } from "../parts/form.tsx";
import { Card, Page } from "../parts/page.tsx";

export function FindRequestPage() {
  const { placeOf } = useAccount();
  const [id, setId] = useState("");
  const show = async () => navigate(placeOf(`requests/${encodeURIComponent(id.trim())}`));
  return (
    <Page
      title="Requests"
      lead="The steps of one request in gateway, actors, mail and workers, for three days."
    >
      <Card>
        <Form submit="Show" onSubmit={show}>
          <TextField
            label="Request id"
            hint="See the header X-Request-Id of every response, responses to webhooks, and the text below every error"
            value={id}
            onChange={setId}
            isCode
            required
            autoFocus
          />
        </Form>
      </Card>
    </Page>
  );
}
