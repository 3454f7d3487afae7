/**
 * Finds a module that is loaded by its path, as a process, as a thread or in the place of another module. Its name ends
 * as that of the calling module does: in `.ts` in a clone, in `.js` in the package. `npm run build` reads these calls,
 * so write both arguments out.
 */
export function moduleBeside(here: string, name: string): URL {
  return new URL(`${name}${here.slice(here.lastIndexOf("."))}`, here);
}
