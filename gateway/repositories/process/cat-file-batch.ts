/** Reads the output of `git cat-file --batch`. */

const NEWLINE = 10;

/** Yields objects. Git prints each object as a line `<id> <type> <bytes>`, the content, and a newline. */
export async function* batchOf(source: AsyncIterable<Buffer>) {
  let chunks: Buffer[] = [];
  let [held, needed] = [0, 1];
  for await (const chunk of source) {
    chunks.push(chunk);
    held += chunk.length;
    if (held < needed) continue;
    let ahead = Buffer.concat(chunks);
    for (;;) {
      const end = ahead.indexOf(NEWLINE);
      const [id = "", , size = "0"] = ahead.toString("latin1", 0, Math.max(end, 0)).split(" ");
      needed = end < 0 ? ahead.length + 1 : end + 1 + Number(size) + 1;
      if (ahead.length < needed) break;
      yield { id, content: ahead.subarray(end + 1, needed - 1) };
      ahead = ahead.subarray(needed);
    }
    chunks = [ahead];
    held = ahead.length;
  }
}
