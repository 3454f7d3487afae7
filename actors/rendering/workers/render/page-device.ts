/** Chooses the device of a page: a preset of puppeteer, or the window that the request specifies. */

import { ActorError } from "../../../../schemas/errors.ts";
import { VIEWPORT } from "../../lib/browser/context-page.ts";
import { KnownDevices } from "../../lib/browser/driver-parts.ts";
import type { Action } from "./held-page.ts";
import type { PageParameters } from "./outputs/output.ts";

/**
 * Returns the parameters with the viewport and the user agent of their device, unless the request specifies these
 * itself. A page that is captured or on which actions run needs a visible surface of the size of its layout, which
 * costs time. Other pages do without it.
 */
export function onDevice<P extends PageParameters>(parameters: P, action: Action): P {
  const { device, actions = [] } = parameters;
  const preset = device === undefined ? undefined : presetOf(device);
  const isShown = action === "capture" || actions.length > 0 || hasPicture(parameters);
  const viewport = parameters.viewport ?? preset?.viewport ?? (isShown ? VIEWPORT : undefined);
  const userAgent = parameters.userAgent ?? preset?.userAgent;
  return { ...parameters, viewport, userAgent };
}

/** True for a snapshot with a screenshot. */
const hasPicture = (parameters: object) =>
  "formats" in parameters &&
  Array.isArray(parameters.formats) &&
  parameters.formats.includes("screenshot");

function presetOf(name: string) {
  const devices: Record<string, (typeof KnownDevices)[keyof typeof KnownDevices]> = KnownDevices;
  if (Object.hasOwn(devices, name)) return devices[name];
  const message = `Expected a device of the driver, as in ${Object.keys(devices).slice(-3).join(", ")}`;
  throw new ActorError("invalid_request", "Cannot show the page: the device is unknown", {
    faults: [{ pointer: "/device", message }],
  });
}
