/** Three ways to begin, with the account's own address and id. */
import { useAccount } from "../lib/account.tsx";
import { curlOf } from "../lib/rest.ts";
import { Link, ROOT } from "../lib/router.tsx";
import { CopyButton } from "../parts/copy.tsx";
import { Card } from "../parts/page.tsx";

export function QuickStarts() {
  const { account, restPath, placeOf } = useAccount();
  const pdf = curlOf({
    method: "POST",
    path: restPath("/browser-rendering/pdf"),
    json: { html: "<h1>Hello from Trunkline</h1>" },
  });
  const crawl = curlOf({
    method: "POST",
    path: restPath("/browser-rendering/crawl"),
    json: { url: "https://example.com/", limit: 10, formats: ["markdown"] },
  });
  const git = [
    curlOf({
      method: "POST",
      path: restPath("/artifacts/namespaces/default/repos"),
      json: { name: "hello" },
    }),
    // What stands in a command line, everybody on the machine can see.
    'GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=http.extraHeader GIT_CONFIG_VALUE_0="Authorization: Bearer $TOKEN" \\',
    `  git clone ${location.origin}${ROOT}/git/${account.id}/default/hello.git`,
  ].join("\n");
  return (
    <Card title="Quick starts">
      <p class="quiet">
        Each needs a token in <code>TOKEN</code>:{" "}
        <Link to={placeOf("account/tokens/new")}>make one</Link>.
      </p>
      <Start title="Print a page as a PDF" text={`${pdf} \\\n  -o hello.pdf`} />
      <Start title="Crawl a site to Markdown" text={crawl} />
      <Start title="Make a repository and clone it" text={git} />
    </Card>
  );
}

function Start({ title, text }: { title: string; text: string }) {
  return (
    <section class="start" aria-label={title}>
      <div class="card-head">
        <h3>{title}</h3>
        <CopyButton text={text} />
      </div>
      <pre>{text}</pre>
    </section>
  );
}
