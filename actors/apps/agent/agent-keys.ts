/** Lists agents by the subjects of their logs. An agent has a log while it is open, and while it stores something. */
import { isAddress } from "../../../schemas/apps/app-names.ts";
import { agentLogsOf } from "../../../schemas/split-streams.ts";
import type { Bus } from "../../runtime/bus/bus.ts";

export class AgentLogKeys {
  readonly #bus: Pick<Bus, "subjectsOf" | "layout">;

  constructor(bus: Pick<Bus, "subjectsOf" | "layout">) {
    this.#bus = bus;
  }

  /** Returns, in any order, the keys of all agents of an app (`appKey`), or only of the agents of one class. */
  async beneath(app: string, className?: string): Promise<string[]> {
    const { stream, beneath, keyOf } = agentLogsOf(this.#bus.layout, app);
    const filter = beneath(className === undefined ? app : `${app}.${className}`);
    return (await this.#bus.subjectsOf(stream, filter)).map(keyOf);
  }

  async has(key: string): Promise<boolean> {
    if (!isAddress(key)) return false;
    const { stream, log } = agentLogsOf(this.#bus.layout, key);
    const subjects = await this.#bus.subjectsOf(stream, log(key));
    return subjects.length > 0;
  }
}
