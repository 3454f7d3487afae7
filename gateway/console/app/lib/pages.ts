/** The types by which an area declares its pages. */
import type { ComponentType } from "preact";

/** Pages of an area: the pattern of their path below the area, and what shows them. The first match counts. */
export type Pages = Readonly<Record<string, ComponentType<PageParameters>>>;

/** Parameters of the pattern, such as `clientId` of ":clientId". */
export interface PageParameters {
  parameters: Readonly<Record<string, string>>;
}
