/** Descriptions of the REST API's groups in the OpenAPI document. */
export const TAG_DESCRIPTIONS: Readonly<Record<string, string>> = {
  Accounts: "Accounts of the caller, and the permissions that scopes and tokens name",
  Members: "People of an account, their roles and invitations",
  Tokens: "API tokens of an account",
  Sessions: "Browsers in which a person is signed in",
  Rendering: "PDFs, screenshots and other results of a page in a browser",
  DevTools: "Browsers that puppeteer, playwright and other clients of the DevTools protocol drive",
  Crawls: "Crawls of whole sites",
  Repositories: "Git repositories and their namespaces",
  "Repository content": "Refs, commits and files of a repository",
  "Repository tokens": "Tokens that open one repository to git clients",
  "OAuth clients": "Clients that may ask people for authorization",
  Apps: "Deployed apps, their secrets and logs",
  Requests: "The way of one request through the platform",
  Installation: "Hosts, queues and dead letters, for administrators",
  Deliveries: "Webhooks that came in and went out",
};
