/** The declaration of one page: its path, how it is shown, and how its form is handled. */
import type { Visit } from "./visit.ts";

type Handle = (visit: Visit) => Promise<void>;

export interface FormPage {
  path: string;
  /** Shows the page. If absent, the path accepts only a form. */
  get?: Handle;
  /** Handles the page's form. */
  post?: Handle;
}
