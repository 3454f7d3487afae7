/** Returns the address of a page's next request, or of a settled page's last one. */
export const addressOf = ({ url, at = url }: { url: string; at?: string | undefined }): string =>
  at;
