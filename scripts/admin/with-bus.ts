/** Gives an operator's command a connection to the bus for as long as it takes. */
import { Bus } from "../../actors/runtime/bus.ts";
import { busOf } from "./bus-of.ts";

export async function withBus<R>(
  environment: NodeJS.ProcessEnv,
  ask: (bus: Bus) => Promise<R>,
): Promise<R> {
  const bus = await Bus.connect({ ...(await busOf(environment)), name: "trunkline-admin" });
  try {
    return await ask(bus);
  } finally {
    await bus.close();
  }
}
