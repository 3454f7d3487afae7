/** Lists agents by the subjects of their logs. Each agent has a log from the first time it was opened. */
import { isAddress } from "../../../schemas/apps/app-names.ts";
import {
  agentLogSubject,
  agentLogSubjects,
  decodeKey,
  STREAMS,
} from "../../../schemas/subjects.ts";
import type { Bus } from "../../runtime/bus/bus.ts";

const PREFIX = "agentlog.";

export class AgentLogKeys {
  readonly #bus: Pick<Bus, "subjectsOf">;

  constructor(bus: Pick<Bus, "subjectsOf">) {
    this.#bus = bus;
  }

  /** Returns, in any order, the keys of all agents of an app (`appKey`), or only of the agents of one class. */
  async beneath(app: string, className?: string): Promise<string[]> {
    const filter = agentLogSubjects(className === undefined ? app : `${app}.${className}`);
    const subjects = await this.#bus.subjectsOf(STREAMS.agents, filter);
    return subjects.map((subject) => decodeKey(subject.slice(PREFIX.length)));
  }

  async has(key: string): Promise<boolean> {
    if (!isAddress(key)) return false;
    const subjects = await this.#bus.subjectsOf(STREAMS.agents, agentLogSubject(key));
    return subjects.length > 0;
  }
}
