/** Range of the bytes of an answer, and size of the file. */
export interface ContentRange {
  readonly from: number;
  /** End, exclusive. */
  readonly to: number;
  readonly size: number;
}

/** Parses a `Content-Range` such as `bytes 0-99/1000` (RFC 9110, section 14.4). Null if it is missing or has no size. */
export function parseContentRange(header: string | undefined): ContentRange | null {
  const match = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(header ?? '');
  if (match === null) return null;
  const [from, last, size] = match.slice(1).map(Number) as [number, number, number];
  return last < from || last >= size ? null : { from, to: last + 1, size };
}
