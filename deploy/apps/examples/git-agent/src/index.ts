/** Writes notes into repositories with git: each agent clones its repository into memory, commits and pushes. */
import git from "isomorphic-git";
import { createFsFromVolume, Volume } from "memfs";
import { Agent, type AgentNamespace, type Artifacts, getAgentByName } from "trunkline/agents";
import { gitHttp } from "./git-http.ts";

interface Env {
  readonly ARTIFACTS: Artifacts;
  readonly Notebook: AgentNamespace<Notebook>;
}

const BRANCH = "main";
const FOLDER = "/clone";
const FILE = "NOTES.md";
const AUTHOR = { name: "Notebook", email: "notebook@example.com" };

/** The agent of one repository, which has the same name. */
export class Notebook extends Agent<Env> {
  // One turn runs at a time, because two turns would push to the same branch.
  static override options = { serialTurns: true };

  override async onRequest(request: Request): Promise<Response> {
    const note = (await request.text()).trim();
    if (note === "") return new Response("Expected the text of a note\n", { status: 400 });
    return Response.json(await this.#write(note));
  }

  async #write(note: string): Promise<{ commit: string; notes: number }> {
    const repository = { ...(await this.#open()), fs: createFsFromVolume(new Volume()) };
    await git.clone({ ...repository, ref: BRANCH, singleBranch: true, depth: 1 });
    const path = `${FOLDER}/${FILE}`;
    const before = await repository.fs.promises.readFile(path, "utf8").catch(() => "");
    const notes = `${before}- ${note}\n`;
    await repository.fs.promises.writeFile(path, notes);
    await git.add({ ...repository, filepath: FILE });
    const commit = await git.commit({ ...repository, message: `Note: ${note}`, author: AUTHOR });
    await git.push({ ...repository, ref: BRANCH });
    return { commit, notes: notes.trimEnd().split("\n").length };
  }

  /** Opens the repository. The first note creates it, with a first commit to clone. */
  async #open() {
    const { ARTIFACTS } = this.env;
    const repo = await ARTIFACTS.get(this.name).catch(async () => {
      await ARTIFACTS.create(this.name, { setDefaultBranch: BRANCH });
      const made = await ARTIFACTS.get(this.name);
      const changes = [{ path: FILE, content: "" }];
      await made.createCommit({ branch: BRANCH, message: "Notebook", author: AUTHOR, changes });
      return made;
    });
    const { plaintext: token } = await repo.createToken("write", 300);
    return {
      dir: FOLDER,
      http: gitHttp(ARTIFACTS),
      url: `http://trunkline/git/${ARTIFACTS.namespace}/${this.name}.git`,
      onAuth: () => ({ username: "x", password: token }),
    };
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const [, name] = /^\/notes\/([a-z\d-]{1,60})$/.exec(new URL(request.url).pathname) ?? [];
    if (name === undefined || request.method !== "POST") {
      return new Response("POST a note to /notes/<repository>\n", { status: 404 });
    }
    const notebook = await getAgentByName(env.Notebook, name);
    return notebook.fetch(request);
  },
};
