/** The group of the routes of operators, which several areas declare. */
import type { Tag } from "./route.ts";

/** The routes with which administrators watch and mend the installation. */
export const INSTALLATION_TAG: Tag = {
  name: "Installation",
  description: "Hosts, queues and dead letters, for administrators",
};
