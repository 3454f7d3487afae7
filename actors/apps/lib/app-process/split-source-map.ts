/** Removes the source map from the end of a bundle, because V8 would keep it in memory as part of the code. */

interface SplitBundle {
  code: Uint8Array;
  /** The map as JSON; undefined if the bundle has none. */
  map: Uint8Array | undefined;
}

/** The comment with a bundle's source map (revision 3). It contains the map in base64. */
const COMMENT = "\n//# sourceMappingURL=data:application/json";
const BASE64 = "base64,";

export function splitSourceMap(bundle: Uint8Array): SplitBundle {
  const bytes = Buffer.from(bundle.buffer, bundle.byteOffset, bundle.byteLength);
  const at = bytes.lastIndexOf(COMMENT);
  if (at < 0) return { code: bundle, map: undefined };
  const comment = bytes
    .subarray(at + 1)
    .toString("latin1")
    .trimEnd();
  const start = comment.indexOf(BASE64);
  // Code follows, so the text is part of a string or is not the last comment.
  if (comment.includes("\n") || start < 0) return { code: bundle, map: undefined };
  return {
    code: bytes.subarray(0, at + 1),
    map: Buffer.from(comment.slice(start + BASE64.length), "base64"),
  };
}
