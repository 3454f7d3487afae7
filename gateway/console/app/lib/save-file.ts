/** Saves a file of the REST API on the person's machine. A plain link could not send the header of the session. */
import { send } from "./rest.ts";

/** Resolves when the browser has the file. Rejects with a RestError. */
export async function saveFile(path: string, name: string): Promise<void> {
  const blob = await (await send({ path })).blob();
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
