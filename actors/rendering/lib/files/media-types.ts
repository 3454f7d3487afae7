/** Media types of files, by file extension. Browsers detect other types from the bytes. */

/** Types of text files, which may be encoded in UTF-8. */
const TEXT: Record<string, string> = {
  html: "text/html",
  htm: "text/html",
  xhtml: "application/xhtml+xml",
  css: "text/css",
  js: "text/javascript",
  mjs: "text/javascript",
  json: "application/json",
  map: "application/json",
  xml: "application/xml",
  svg: "image/svg+xml",
  txt: "text/plain",
  md: "text/markdown",
  csv: "text/csv",
  vtt: "text/vtt",
};
const BINARY: Record<string, string> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  avif: "image/avif",
  bmp: "image/bmp",
  ico: "image/x-icon",
  woff: "font/woff",
  woff2: "font/woff2",
  ttf: "font/ttf",
  otf: "font/otf",
  wasm: "application/wasm",
  pdf: "application/pdf",
  mp3: "audio/mpeg",
  ogg: "audio/ogg",
  wav: "audio/wav",
  mp4: "video/mp4",
  webm: "video/webm",
};

/** Returns the Content-Type of a file; undefined for an unknown extension. `isUtf8` checks the bytes of the file. */
export function mediaTypeOf(name: string, isUtf8: () => boolean): string | undefined {
  const end = /\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase() ?? "";
  const text = Object.hasOwn(TEXT, end) ? TEXT[end] : undefined;
  // Bytes that are not UTF-8 get no charset: the text itself names its encoding, or begins with a byte order mark.
  if (text !== undefined) return isUtf8() ? `${text}; charset=utf-8` : text;
  return Object.hasOwn(BINARY, end) ? BINARY[end] : undefined;
}
