/**
 * Executes the steps of deploy/Containerfile in a folder, where no container engine runs. Each step runs in namespaces of
 * its own, with the folder as its root. Needs root, Debian's `apt-get` and `unshare`.
 */
import { execFile } from "node:child_process";
import { access, chmod, cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { REPOSITORY, TOOLS } from "../tools.ts";
import { imageCopies, imagePackageCommands, read, variablesOf } from "./manifests.ts";

const run = promisify(execFile);
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

/** Debian's image for containers has none of these files, and keeps no packages that it has installed. */
const SLIM_OMITS = ["doc", "info", "locale", "man", "groff", "lintian", "linda"];
const CLEAN = `DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
`;

/**
 * Makes `$1` the root, with a new /proc, and runs the remaining words as the user `$2`. A chroot would not do, because
 * Linux refuses user namespaces in a chroot, and Chromium's sandbox needs one.
 */
const ENTER = `set -e
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
cd "$1"
mkdir -p .before
pivot_root . .before
umount -l /.before
rmdir /.before
cd "$3"
user=$2
shift 3
exec setpriv --pdeathsig keep --reuid "\${user%:*}" --regid "\${user#*:}" --clear-groups -- env -i "$@"`;

interface Step {
  name: string;
  text: string;
}

/** The root of an image, in which programs run as its last steps say. */
export interface ImageRoot {
  folder: string;
  /**
   * Returns the command that runs a program in the image: as the user, in the folder and with the variables of its last
   * steps, and with more variables.
   */
  command(program: readonly string[], variables?: Record<string, string>): string[];
}

/** Returns whether this machine can execute the steps: as root, in namespaces, with the packages of Debian. */
export async function canBuildImage(): Promise<boolean> {
  if (process.getuid?.() !== 0) return false;
  const found = await Promise.allSettled([
    run("apt-get", ["-v"]),
    run("unshare", ["--mount", "--pid", "--fork", "true"]),
    access(DEBIAN_KEYS),
  ]);
  return found.every(({ status }) => status === "fulfilled");
}

const DEBIAN_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg";

/** Builds the image below `parent`. Throws if a step fails, or if the file has a step of another kind. */
export async function buildImage(parent: string): Promise<ImageRoot> {
  const folder = join(parent, "root");
  const packages = join(parent, "packages");
  const [, version = ""] = /^ARG BASE_IMAGE=\S+debian:(\w+)-slim$/m.exec(containerfile()) ?? [];
  await Promise.all([makeBase(folder, version, parent), makePackages(packages)]);
  const environment: Record<string, string> = { PATH: PATH_OF_DEBIAN };
  let user = "0:0";
  let cwd = "/";
  const enter = (program: readonly string[], more?: Record<string, string>) =>
    enterCommand(folder, { user, cwd, variables: { ...environment, ...more }, program });
  for (const { name, text } of lastStage()) {
    if (name === "RUN") {
      const [command = "", ...words] = enter(["sh", "-c", text]);
      await run(command, words, { maxBuffer: OUTPUT_BYTES_MAX });
    } else if (name === "COPY") await copy(text, { folder, cwd, packages });
    else if (name === "WORKDIR") {
      cwd = text;
      await mkdir(join(folder, cwd), { recursive: true });
    } else if (name === "USER") user = text;
    else if (name === "ENV") Object.assign(environment, variablesOf(text.split(" ")));
    else if (!WITHOUT_FILES.has(name)) throw new Error(`Cannot execute a step ${name}`);
  }
  return { folder, command: enter };
}

const PATH_OF_DEBIAN = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Steps that change no file of the image. */
const WITHOUT_FILES = new Set(["VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"]);

const containerfile = () => read("deploy/Containerfile");

/** Returns the steps of the last stage. */
function lastStage(): Step[] {
  const [, text = ""] = containerfile().split(/\nFROM \$\{BASE_IMAGE\}\n/);
  const lines = text.replace(/\\\n/g, " ").split("\n");
  return lines
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [name = ""] = line.split(" ", 1);
      return { name, text: line.slice(name.length + 1) };
    });
}

interface EnterOptions {
  user: string;
  cwd: string;
  variables: Record<string, string>;
  program: readonly string[];
}

function enterCommand(folder: string, { user, cwd, variables, program }: EnterOptions): string[] {
  const unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL"];
  const pairs = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  return [...unshare, "sh", "-c", ENTER, "enter", folder, user, cwd, ...pairs, ...program];
}

/** Makes a minimal Debian from the packages of the mirror that this machine uses. */
async function makeBase(folder: string, version: string, parent: string): Promise<void> {
  const tool = await mkdtemp(join(parent, "debootstrap-"));
  const { stdout } = await run("apt-get", ["download", "--print-uris", "debootstrap"]);
  const [, mirror] = /^'(\S+)\/pool\//m.exec(stdout) ?? [];
  if (mirror === undefined) throw new Error(`Cannot find a mirror of Debian in "${stdout}"`);
  // As the user root, because apt's own user cannot write to the folder.
  await run("apt-get", ["-o", "APT::Sandbox::User=root", "download", "debootstrap"], { cwd: tool });
  await run("sh", ["-c", "dpkg-deb --extract debootstrap_*.deb ."], { cwd: tool });
  // In a namespace of its own, which also removes what is mounted in the folder if the program is killed.
  const program = ["unshare", "--mount", join(tool, "usr/sbin/debootstrap")];
  const words = ["--variant=minbase", `--keyring=${DEBIAN_KEYS}`, version, folder, mirror];
  await run("env", [...program, ...words], {
    env: { ...process.env, DEBOOTSTRAP_DIR: join(tool, "usr/share/debootstrap") },
    maxBuffer: OUTPUT_BYTES_MAX,
  });
  await rm(tool, { recursive: true });
  await run("sh", ["-c", "rm -f var/cache/apt/archives/*.deb var/cache/apt/*.bin"], {
    cwd: folder,
  });
  await writeFile(join(folder, "etc/apt/apt.conf.d/docker-clean"), CLEAN);
  const rules = SLIM_OMITS.map((name) => `path-exclude /usr/share/${name}/*\n`);
  await writeFile(join(folder, "etc/dpkg/dpkg.cfg.d/docker"), rules.join(""));
  for (const name of SLIM_OMITS) {
    await rm(join(folder, "usr/share", name), { recursive: true, force: true });
  }
  await cp("/etc/resolv.conf", join(folder, "etc/resolv.conf"), { dereference: true });
}

/** Executes the stage of the Node packages by this machine's npm. */
async function makePackages(folder: string): Promise<void> {
  await mkdir(folder);
  for (const path of ["package.json", "package-lock.json", ".npmrc"]) {
    await cp(join(REPOSITORY, path), join(folder, path));
  }
  // Uses a separate npm cache, because the user's own cache may lack packages that its index lists.
  const npm = { npm_config_cache: join(TOOLS, "npm-cache"), npm_config_prefer_offline: "true" };
  for (const command of imagePackageCommands()) {
    await run("sh", ["-c", command], { cwd: folder, env: { ...process.env, ...npm } });
  }
}

/** Executes a step COPY. Leaves out the files of the repository that .dockerignore excludes. */
async function copy(
  text: string,
  { folder, cwd, packages }: { folder: string; cwd: string; packages: string },
): Promise<void> {
  const words = text.split(" ");
  const stage = words[0]?.startsWith("--from=")
    ? words.shift()?.slice("--from=".length)
    : undefined;
  const target = words.pop() ?? "";
  const at = join(folder, target.startsWith("/") ? target : join(cwd, target));
  for (const source of words) {
    const isInto = target.endsWith("/") || words.length > 1;
    const to = isInto ? join(at, source) : at;
    if (stage === "nats") {
      await cp(join(TOOLS, "nats-server"), to, { dereference: true });
      await chmod(to, 0o755);
    } else if (stage === "packages") {
      await cp(source.replace(/^\/app/, packages), to, { recursive: true, verbatimSymlinks: true });
    } else if (imageCopies().includes(source)) {
      await cp(join(REPOSITORY, source), to, { recursive: true, filter: isCopied });
    } else throw new Error(`Cannot copy ${source}`);
  }
}

/** The rules of .dockerignore. */
const isCopied = (path: string) =>
  !/\.test\.ts$|\/testing$|\/bench$|\/deploy\/(\.env|bus)$/.test(path);

/**
 * Returns the kB of all files of the image, and of these the kB of the named packages of Debian with the packages that
 * only they need.
 */
export async function sizesOf(image: ImageRoot, packages: readonly string[]) {
  const { folder } = image;
  const { stdout: all } = await run("du", ["-sk", "--apparent-size", "-x", folder]);
  const remove = ["apt-get", "remove", "--simulate", "--auto-remove", ...packages];
  const [command = "", ...words] = image.command(remove);
  const { stdout: plan } = await run(command, words);
  const removed = new Set(Array.from(plan.matchAll(/^Remv (\S+)/gm), ([, name]) => name));
  const status = await readFile(join(folder, "var/lib/dpkg/status"), "utf8");
  const sizes = status.split("\n\n").map((entry) => {
    const isRemoved = removed.has(/^Package: (.*)$/m.exec(entry)?.[1]);
    return isRemoved ? Number(/^Installed-Size: (\d+)$/m.exec(entry)?.[1] ?? 0) : 0;
  });
  return { allKb: parseInt(all, 10), packagesKb: sizes.reduce((sum, kb) => sum + kb, 0) };
}
