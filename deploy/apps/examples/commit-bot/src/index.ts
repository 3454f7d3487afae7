/**
 * After each push to a repository's default branch, prints its history as a PDF and commits the PDF to the branch
 * `changelog`.
 */
import { Agent, type Artifacts, type Browser, type Commit } from "trunkline/agents";

interface Env {
  readonly ARTIFACTS: Artifacts;
  readonly BROWSER: Browser;
}

const BRANCH = "changelog";
const FILE = "CHANGELOG.pdf";
const COMMITS = 200;

interface Pushed {
  type: string;
  source: { repoName: string };
  payload: { ref: string; after: string };
}

export interface ChangelogState {
  /** Hash of the newest commit in the printed history. */
  of: string | null;
}

export class Changelog extends Agent<Env, ChangelogState> {
  static override options = { serialTurns: true };
  override initialState: ChangelogState = { of: null };

  override async onRequest(request: Request): Promise<Response> {
    const { source, payload } = (await request.json()) as Pushed;
    const repo = await this.env.ARTIFACTS.get(source.repoName);
    const { defaultBranch, name } = await repo.info();
    // The bot's own commit to the branch `changelog` also causes a push event, which is ignored.
    if (payload.ref !== `refs/heads/${defaultBranch}`) return done();
    const [history, printed] = await Promise.all([
      repo.log({ ref: payload.ref, limit: COMMITS }),
      repo.log({ ref: BRANCH, limit: 1 }).catch(noneBefore),
    ]);
    const [newest] = history;
    const message = `Changelog of ${newest?.hash}`;
    // Prints nothing if the newest commit is printed already: the delivery of a later push may have done it, or an
    // interrupted attempt of this one.
    if (newest && printed[0]?.message !== message) {
      const pdf = await this.env.BROWSER.pdf({
        html: pageOf(name, history),
        pdfOptions: {
          format: "a4",
          margin: { top: "2cm", bottom: "2cm", left: "2cm", right: "2cm" },
        },
      });
      await repo.createCommit({
        branch: BRANCH,
        expected: printed[0]?.hash ?? null,
        message,
        author: { name: "Commit bot", email: "commit-bot@example.com" },
        changes: [{ path: FILE, base64: Buffer.from(pdf).toString("base64") }],
      });
    }
    this.setState({ of: newest?.hash ?? null });
    return done();
  }
}

const done = () => new Response(null, { status: 204 });

function pageOf(name: string, history: Commit[]): string {
  const entries = history.map(({ hash, message, author, committedAt }) => {
    const [title = "", ...rest] = message.split("\n");
    const day = new Date(committedAt * 1_000).toISOString().slice(0, 10);
    const facts = `${day} · ${author.name} · ${hash.slice(0, 12)}`;
    return `<h2>${escaped(title)}</h2><p>${escaped(facts)}</p><pre>${escaped(rest.join("\n").trim())}</pre>`;
  });
  const style =
    "body{font:11pt sans-serif}h2{font-size:12pt;margin-bottom:0}p{color:#555;margin:0}pre{white-space:pre-wrap}";
  return `<!doctype html><meta charset="utf-8"><title>${escaped(name)}</title><style>${style}</style><h1>${escaped(name)}</h1>${entries.join("")}`;
}

const escaped = (text: string) =>
  text.replace(/[&<>"]/g, (character) => `&#${character.codePointAt(0)};`);

export default {
  fetch: () => new Response("It waits for pushes", { status: 404 }),
};

/** Returns no commits if the branch does not exist, as before the first changelog. */
function noneBefore(error: unknown): [] {
  if (error instanceof Error && "code" in error && error.code === "NOT_FOUND") return [];
  throw error;
}
