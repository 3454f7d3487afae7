/** Where a page's next request goes, and a settled one's went. */
export const addressOf = ({ url, at = url }: { url: string; at?: string | undefined }): string =>
  at;
