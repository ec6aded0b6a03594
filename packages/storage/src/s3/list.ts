import { TransientError } from '../http/retry.js';
import type { Entry } from '../storage.js';

/** One page of ListObjectsV2, asked for with `encoding-type=url`. */
export interface ListPage {
  readonly entries: readonly Entry[];
  /** With a delimiter: the next part of each name, up to and including the delimiter. */
  readonly folders: readonly string[];
  /** Token of the next page; null after the last page; undefined if the answer lacks the token although more pages follow. */
  readonly next: string | null | undefined;
}

const WHOLE_LIST = /<ListBucketResult[\s>].*<\/ListBucketResult>\s*$/s;

/**
 * Parses the answer to ListObjectsV2 (Amazon S3 API Reference). Names are relative to `prefix`. Throws {@link
 * TransientError} unless the list is complete, because an answer without a length may have been cut.
 */
export function parseListPage(xml: string, prefix: string): ListPage {
  if (!WHOLE_LIST.test(xml)) throw new TransientError('the answer is not a whole list');
  const isEncoded = /<EncodingType>url<\/EncodingType>/.test(xml);
  const nameOf = (key = ''): string => {
    const name = isEncoded ? decoded(key) : key;
    if (!name.startsWith(prefix)) throw new TransientError('the list has names that were not asked for');
    return name.slice(prefix.length);
  };
  const entries = [...xml.matchAll(/<Contents>(.*?)<\/Contents>/gs)].map(([, item]): Entry => {
    const modifiedMs = Date.parse(textOf(item!, 'LastModified') ?? '');
    const size = textOf(item!, 'Size') ?? '';
    if (!/^\d+$/.test(size)) throw new TransientError('the list has a file without a size');
    return {
      name: nameOf(textOf(item!, 'Key')),
      size: Number(size),
      version: quoted(textOf(item!, 'ETag') ?? ''),
      modifiedMs: Number.isNaN(modifiedMs) ? undefined : modifiedMs,
    };
  });
  const folders = [...xml.matchAll(/<CommonPrefixes>(.*?)<\/CommonPrefixes>/gs)].map(([, item]) =>
    nameOf(textOf(item!, 'Prefix')),
  );
  const isCut = textOf(xml, 'IsTruncated') === 'true';
  return { entries, folders, next: isCut ? textOf(xml, 'NextContinuationToken') || undefined : null };
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name.replaceAll('+', ' '));
  } catch {
    throw new TransientError('the list has a name that is not URL-encoded');
  }
}

/** ETags in the form of headers. Some servers omit the quotation marks in lists. */
function quoted(etag: string): string {
  return etag === '' || /^(W\/)?"/.test(etag) ? etag : `"${etag}"`;
}

/** The text of the first element of this name. */
export function textOf(xml: string, name: string): string | undefined {
  const text = new RegExp(`<${name}>(.*?)</${name}>`, 's').exec(xml)?.[1];
  return text?.replace(/&(?:lt|gt|amp|quot|apos|#(\d+)|#x([0-9a-fA-F]+));/g, (entity, decimal, hexadecimal) => {
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    if (hexadecimal !== undefined) return String.fromCodePoint(Number.parseInt(hexadecimal, 16));
    return { '&lt;': '<', '&gt;': '>', '&amp;': '&', '&quot;': '"', '&apos;': "'" }[entity as string]!;
  });
}
