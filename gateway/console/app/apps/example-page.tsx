/** Deploys an example app, so that agents and webhooks can be tried without a terminal. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { ask } from "../lib/rest.ts";
import { SecretOnce } from "../parts/button.tsx";
import { Form } from "../parts/form.tsx";
import { ButtonLink } from "../parts/link.tsx";
import { Card, Page } from "../parts/page.tsx";
import { hex } from "../webhooks/test-event.ts";
import { appPath } from "./agent-place.ts";

interface Deployed {
  name: string;
  /** The path of its webhook endpoint. */
  endpoint: string;
  secret: string;
}

export function ExamplePage() {
  const { restPath } = useAccount();
  const [deployed, setDeployed] = useState<Deployed>();
  const deploy = async () => {
    const { config, bundle } = await import("example-app");
    const [{ path: endpoint, secret: name }] = config.webhooks;
    const app = restPath(appPath(config.name));
    const secret = hex(crypto.getRandomValues(new Uint8Array(16)));
    await ask({ method: "PUT", path: `${app}/secrets/${name}`, json: { value: secret } });
    await ask({ method: "PUT", path: app, json: { config, bundle } });
    setDeployed({ name: config.name, endpoint, secret });
  };
  return (
    <Page
      title="Example app"
      above={["Apps and agents", "apps"]}
      lead="It takes webhooks of GitHub. Each repository gets an agent, which keeps its events in a table and counts them in its state."
    >
      <Card title={deployed && `${deployed.name} is deployed`}>
        {deployed ? (
          <>
            <SecretOnce label="Signing secret" value={deployed.secret} />
            <p>GitHub, or a test from here, signs each event with it.</p>
            <p class="actions">
              <ButtonLink isMain to={testPlace(deployed)}>
                Send it a test event
              </ButtonLink>
              <ButtonLink to={`apps/${deployed.name}`}>Go to the app</ButtonLink>
            </p>
          </>
        ) : (
          <Form submit="Deploy the example" onSubmit={deploy}>
            <p>You can delete it again with all that it keeps.</p>
          </Form>
        )}
      </Card>
    </Page>
  );
}

const testPlace = ({ name, endpoint }: Deployed) =>
  `webhooks/${name}/endpoints/${encodeURIComponent(endpoint)}/test`;
