/** Separates user and password from the URLs of the bus, because the client library ignores credentials in URLs. */

interface BusAddress {
  servers: string[];
  user?: string;
  pass?: string;
}

/**
 * Returns options for `connect` from URLs separated by commas, as in `nats://user:password@host:4222`. All servers of
 * a bus have the same users, so one URL with credentials is enough. Throws if two URLs have different credentials;
 * the error contains no secret.
 */
export function readBusAddress(urls: string): BusAddress {
  const servers: string[] = [];
  let credentials: { user: string; pass: string } | undefined;
  for (const text of urls.split(",")) {
    const url = parsed(text);
    const user = decodeURIComponent(url.username);
    const pass = decodeURIComponent(url.password);
    url.username = "";
    url.password = "";
    servers.push(url.href);
    if (user === "") continue;
    if (credentials && (credentials.user !== user || credentials.pass !== pass)) {
      throw new Error(`Cannot read bus address: ${url.host} has other credentials than the first`);
    }
    credentials = { user, pass };
  }
  return { servers, ...credentials };
}

/** Returns the URLs in a form for logs: with the user and without the password. */
export function withoutPasswords(urls: string): string {
  return urls.replace(/(\/\/[^/@:\s,]*):[^/@\s,]*@/g, "$1:…@");
}

function parsed(text: string): URL {
  const url = URL.parse(text.trim());
  if (url === null || url.host === "") {
    const shown = withoutPasswords(text);
    throw new Error(`Cannot read bus address: expected "nats://host:port", found "${shown}"`);
  }
  return url;
}
