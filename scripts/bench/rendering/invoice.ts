/**
 * The page of the rendering benchmarks: an invoice with one page, either as one document or with a separate style
 * sheet and picture.
 */

const ROWS = Array.from({ length: 12 }, (_, row) => {
  const price = 17 * (row + 1);
  return `<tr><td>Item ${row + 1}</td><td>${row + 2}</td><td>${price}.00</td></tr>`;
}).join("");
const BODY = `<h1>Invoice 1234</h1><p>To be paid within 30 days.</p><table>${ROWS}</table>`;

export const STYLE =
  "body { font-family: sans-serif } table { width: 100% } td { border-bottom: 1px solid #ccc }";
export const PICTURE = `<svg xmlns="http://www.w3.org/2000/svg" width="200" height="60"><rect width="200" height="60" fill="#48c"/></svg>`;

export const INVOICE = `<!doctype html><title>Invoice</title><style>${STYLE}</style>${BODY}`;
export const LINKED_INVOICE = `<!doctype html><title>Invoice</title><link rel=stylesheet href=/style.css><img src=/picture.svg>${BODY}`;
