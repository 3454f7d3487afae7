/**
 * Returns the URL of a module in the folder of the calling module. Callers load it by its path: as a process, as a
 * thread, or as a replacement of another module. It has the same extension as the calling module: `.ts` in a clone,
 * `.js` in the package. `npm run build` searches the code for these calls, so both arguments must be literal.
 */
export function moduleBeside(here: string, name: string): URL {
  return new URL(`${name}${here.slice(here.lastIndexOf("."))}`, here);
}
