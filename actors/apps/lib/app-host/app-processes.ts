/**
 * The processes of apps on this host: one for each app and revision. A process starts with the first request and ends when it is idle.
 */
import { join } from "node:path";
import type { ServingApp } from "../../../../schemas/apps/app.ts";
import { APP_PROCESS_IDLE_MS } from "../../../../schemas/apps/limits.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { countWork } from "../../../../schemas/meter.ts";
import { AppProcess, type AppProcessParts } from "../app-process/app-process.ts";
import { agentsByOpenFiles } from "../app-process/open-files-limit.ts";
import { FOLDER_GONE, ProcessEnded } from "../app-process/process-ended.ts";
import { ProcessProbe } from "../app-process/process-probe.ts";
import type { Exported, ProcessStart } from "../app-process/process-program.ts";
import type { AppProcessesParts } from "./app-processes-parts.ts";
import type { AppUsers } from "./app-user.ts";
import { valuesOf } from "./app-values.ts";
import { CrashedTurns } from "./crashed-turns.ts";
import { type IdleProcess, ProcessPlaces } from "./process-places.ts";
import { drainSlot, isOf, type Running, type Slot } from "./process-slot.ts";
import { RestartPauses } from "./restart-pauses.ts";

/** Interval between two searches for idle processes. */
const SWEEP_MS = 5_000;

export class AppProcesses {
  readonly #parts: AppProcessesParts;
  readonly #users: AppUsers;
  /** The serving process of each app, by the app's key. */
  readonly #current = new Map<string, Slot>();
  /** All processes that run or start, including those that are being retired. */
  readonly #all = new Set<Slot>();
  readonly #places: ProcessPlaces;
  readonly #restarts: RestartPauses;
  readonly #crashes = new CrashedTurns();
  readonly #stopped = new AbortController();
  #made = 0;
  readonly #probe: ProcessProbe;
  readonly #agentsMax: number;

  constructor(parts: AppProcessesParts) {
    this.#parts = parts;
    this.#users = parts.users;
    this.#agentsMax = parts.agentsMax ?? agentsByOpenFiles();
    this.#places = new ProcessPlaces(parts.processesMax);
    const { clock, logger } = parts;
    this.#restarts = new RestartPauses(clock);
    const start = (key: string, what: ProcessStart) => this.#run(key, what, () => {});
    this.#probe = new ProcessProbe({ clock, logger, start });
    void this.#sweep();
  }

  get count(): number {
    return this.#all.size;
  }

  /** Number of apps for which this host holds any data. */
  get apps(): number {
    return this.#parts.serving.watched;
  }

  /** The folder that contains the folders of processes. */
  get folder(): string {
    return this.#parts.folder.path;
  }

  /** Returns what this host lacks to run apps. */
  missing(): readonly string[] {
    return this.#probe.missing();
  }

  /**
   * Returns the process that runs the serving version of the app. Rejects with ActorError: `not_found`, `app_broken`,
   * `busy`, `unavailable`.
   */
  async of(key: string): Promise<Running> {
    for (;;) {
      this.#parts.serving.watch(key, () => void this.#refresh(key));
      const serving = await this.#servingOf(key);
      const slot = this.#current.get(key);
      const isCurrent = slot && !slot.outdated.signal.aborted && !slot.running?.process.isEnded;
      if (isCurrent && (await isOf(slot, serving))) {
        slot.idleSince = undefined;
        return slot.starting;
      }
      // Simultaneous requests start only one process.
      if (this.#current.get(key) !== slot) continue;
      return this.#start(key, serving);
    }
  }

  /** Starts a version that does not serve yet, returns its exports, and ends its process. */
  async check(key: string, version: ServingApp): Promise<Exported> {
    const release = this.#takePlace(key);
    try {
      const process = await this.#launch(key, version);
      process.kill("it was started to be checked");
      await process.ended;
      return process.exported;
    } catch (error) {
      if (!(error instanceof ActorError) || error.code !== "unavailable") throw error;
      // Clients retry temporary errors automatically, so this error becomes a final one: a deploy must report it
      // without delay.
      throw new ActorError("deadline_exceeded", error.message);
    } finally {
      release();
      this.#release(key);
    }
  }

  /** Returns whether a process ended during this turn, so that the turn may be the cause. */
  hasCrashed(id: string): boolean {
    return this.#crashes.has(id);
  }

  /** Records that a process ended during this turn. Returns true if the turn must not be tried again. */
  crashed(id: string): boolean {
    return this.#crashes.add(id);
  }

  /** Ends all processes and removes their files. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    for (const slot of this.#all) {
      this.#parts.serving.unwatch(slot.key);
      slot.running?.process.kill("its host stops");
    }
    await Promise.allSettled(
      [...this.#all].map(async ({ starting }) => {
        const { process } = await starting;
        process.kill("its host stops");
        await process.ended;
      }),
    );
    await this.#probe.stop();
    await this.#parts.folder.remove();
  }

  /** Returns the serving version. Ends the processes of an app that was deleted, also if another has its name. */
  async #servingOf(key: string): Promise<ServingApp> {
    const slots = this.#slotsOf(key);
    try {
      const serving = await this.#parts.serving.get(key);
      if (serving.id !== undefined) this.#endDeleted(key, slots, serving.id);
      return serving;
    } catch (error) {
      const isGone = error instanceof ActorError && error.code === "not_found";
      if (isGone) this.#endDeleted(key, slots);
      // Clients may request apps that do not exist, so nothing is kept for such an app.
      this.#release(key);
      throw error;
    }
  }

  #start(key: string, serving: ServingApp): Promise<Running> {
    const release = this.#takePlace(key);
    const before = this.#current.get(key);
    const outdated = new AbortController();
    const isDeleted = () => slot.isDeleted === true;
    const starting = this.#startLater(key, serving, isDeleted).then((process) => {
      const running = { process, outdated: outdated.signal };
      slot.running = running;
      void process.ended.then((error) => this.#ended(slot, error));
      return running;
    });
    const slot: Slot = {
      ...{ key, appId: serving.id, starting, outdated, release },
      ...{ running: undefined, idleSince: undefined },
    };
    this.#all.add(slot);
    this.#current.set(key, slot);
    starting.then(
      () => this.#retireBefore(slot),
      () => {
        this.#forget(slot);
        this.#restarts.putOff(key, serving.revision);
        // The previous process continues until the new process has started.
        const isAlive = before && this.#all.has(before) && !before.outdated.signal.aborted;
        if (isAlive && !this.#current.has(key)) this.#current.set(key, before);
      },
    );
    return starting;
  }

  async #startLater(
    key: string,
    serving: ServingApp,
    isDeleted: () => boolean,
  ): Promise<AppProcess> {
    const { clock } = this.#parts;
    const pauseMs = this.#restarts.leftMs(key, serving.revision);
    if (pauseMs > 0) await clock.wait(pauseMs, this.#stopped.signal);
    if (this.#stopped.signal.aborted) throw new ActorError("unavailable", "Cannot start the app");
    return this.#launch(key, serving, isDeleted);
  }

  async #launch(key: string, serving: ServingApp, isDeleted = () => false): Promise<AppProcess> {
    const { blobs, log } = this.#parts;
    const values = valuesOf(this.#parts, key, serving);
    const bundle = Buffer.concat(await Array.fromAsync(blobs.get(serving.bundle)));
    if (isDeleted()) throw new ActorError("unavailable", "Cannot start the app: it was deleted");
    return this.#run(key, { serving, bundle, values }, (line) =>
      log.print(key, { version: serving.version, ...line }),
    );
  }

  async #run(key: string, start: ProcessStart, log: AppProcessParts["log"]): Promise<AppProcess> {
    const { clock, folder, operations, program, streams } = this.#parts;
    await this.#ensureFolder();
    this.#made += 1;
    return AppProcess.start(
      {
        ...{ agentsMax: this.#agentsMax, clock, key, program },
        operate: (process, message) => void operations.run(process, message),
        streams,
        folder: join(folder.path, String(this.#made)),
        user: this.#users.take(key),
        log,
      },
      start,
    );
  }

  /**
   * Ensures that the folder of the processes exists. If it was removed, processes can open no database, so they are
   * replaced, in a folder that is created again.
   */
  async #ensureFolder(): Promise<void> {
    const { folder, logger } = this.#parts;
    const before = [...this.#all];
    try {
      if (!(await folder.ensure())) return;
    } catch (error) {
      logger.error({ err: error, folder: folder.path }, "the folder of app processes is missing");
      this.#probe.noteFailure();
      const text = "Cannot start the app just now: its host has no folder for processes";
      throw new ActorError("unavailable", text, { retryAfterS: 1 });
    }
    logger.warn({ folder: folder.path }, "folder of app processes was removed, and is made again");
    for (const slot of before) {
      if (slot.running === undefined) continue;
      if (this.#current.get(slot.key) === slot) this.#current.delete(slot.key);
      slot.outdated.abort();
      slot.running.process.kill(FOLDER_GONE);
    }
  }

  #takePlace(key: string): () => void {
    return this.#places.take(key, () => [...this.#idle()]);
  }

  *#idle(): Iterable<IdleProcess> {
    for (const slot of this.#all) {
      if (slot.hasGivenWay || slot.running?.process.users !== 0) continue;
      const giveWay = () => {
        slot.hasGivenWay = true;
        this.#endIdle(slot, "others need its place");
        slot.release();
      };
      yield { key: slot.key, idleSince: slot.idleSince, giveWay };
    }
  }

  /**
   * Starts the serving version if it has changed. Agents of the former version then move to it. Ends the processes of
   * an app that was deleted.
   */
  async #refresh(key: string): Promise<void> {
    const slot = this.#current.get(key);
    if (this.#slotsOf(key).length === 0) return;
    try {
      const serving = await this.#servingOf(key);
      if (!slot || (await isOf(slot, serving))) return;
      if (this.#current.get(key) === slot) await this.#start(key, serving);
    } catch {
      // The next request of the app repeats this.
    }
  }

  #slotsOf(key: string): Slot[] {
    return [...this.#all].filter((slot) => slot.key === key);
  }

  /**
   * Ends the processes of deleted apps. Does not await their turns, which could fetch and send after the deletion.
   * `before`: the slots at the time of the request for the serving version. `id`: the app that now uses the name;
   * absent if none does.
   */
  #endDeleted(key: string, before: readonly Slot[], id?: string): void {
    const deleted = before.filter(
      ({ appId }) => id === undefined || (appId !== undefined && appId !== id),
    );
    // An earlier reply may have started another process of the same app since the request.
    const ids = new Set(deleted.flatMap(({ appId }) => appId ?? []));
    const started = this.#slotsOf(key).filter(({ appId }) => appId !== undefined && ids.has(appId));
    for (const slot of new Set([...deleted, ...started])) {
      slot.isDeleted = true;
      this.#retire(slot);
      slot.starting.then(
        ({ process }) => process.kill("its app was deleted"),
        () => {}, // A process that did not start runs no code.
      );
    }
  }

  /**
   * Retires all older processes, because the new process has started. There may be several if an earlier replacement
   * failed.
   */
  #retireBefore(slot: Slot): void {
    for (const other of this.#all) {
      if (other === slot) return;
      if (other.key === slot.key) this.#retire(other);
    }
  }

  /** Retires a process: it gets no more requests, and ends when it is unused or its drain time is over. */
  #retire(slot: Slot): void {
    if (slot.outdated.signal.aborted) return;
    if (this.#current.get(slot.key) === slot) this.#current.delete(slot.key);
    slot.outdated.abort();
    void drainSlot(slot, this.#parts.clock, this.#stopped.signal);
  }

  #ended(slot: Slot, error: Error): void {
    const { log, logger } = this.#parts;
    const { key, running } = slot;
    const isExpected =
      slot.hasGivenWay || slot.outdated.signal.aborted || this.#stopped.signal.aborted;
    this.#forget(slot);
    if (isExpected || slot.idleSince !== undefined) return;
    const { lastWords = "", bound } = error instanceof ProcessEnded ? error : {};
    countWork("app_processes_ended_total", { reason: bound === undefined ? "other" : "bound" });
    logger.warn({ app: key, reason: error.message, lastWords }, "process of an app ended");
    const version = running?.process.serving.version ?? 0;
    log.print(key, { version, level: "error", text: error.message });
    this.#restarts.putOff(key, running?.process.serving.revision ?? 0);
  }

  #forget(slot: Slot): void {
    slot.outdated.abort();
    slot.release();
    this.#all.delete(slot);
    if (this.#current.get(slot.key) === slot) this.#current.delete(slot.key);
    this.#release(slot.key);
  }

  /** Releases the data that this host holds for the app, unless a process of the app exists here. */
  #release(key: string): void {
    for (const slot of this.#all) if (slot.key === key) return;
    this.#users.release(key);
    if (!this.#current.has(key)) this.#parts.serving.unwatch(key);
  }

  /** Ends a process that nothing uses. The next request of its app starts another. */
  #endIdle(slot: Slot, reason: string): void {
    if (this.#current.get(slot.key) === slot) this.#current.delete(slot.key);
    slot.running?.process.kill(reason);
  }

  async #sweep(): Promise<void> {
    const { clock, idleMs = APP_PROCESS_IDLE_MS } = this.#parts;
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await clock.wait(SWEEP_MS, signal);
      // If this fails, the next request for a process gets the error.
      if (!signal.aborted) await this.#ensureFolder().catch(() => {});
      const now = clock.monotonic();
      for (const slot of this.#all) {
        const isUsed = slot.running?.process.users !== 0;
        if (isUsed) slot.idleSince = undefined;
        else slot.idleSince ??= now;
        if (slot.idleSince === undefined || now - slot.idleSince < idleMs) continue;
        this.#endIdle(slot, "nothing uses it");
      }
      this.#restarts.sweep();
    }
  }
}
