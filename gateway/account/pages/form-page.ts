/** One page as a declaration: its path, how it is shown, and how its form is handled. */
import type { Visit } from "./visit.ts";

type Handle = (visit: Visit) => Promise<void>;

export interface FormPage {
  path: string;
  /** Shows the page. A page without it accepts a form only. */
  get?: Handle;
  /** Handles the page's form. */
  post?: Handle;
}
