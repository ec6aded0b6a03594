import type { Entry } from '../storage.js';

/** One page of ListObjectsV2, asked for with `encoding-type=url`. */
export interface ListPage {
  readonly entries: readonly Entry[];
  /** With a delimiter: what names go on with up to the next one, that one included. */
  readonly folders: readonly string[];
  /** Where the next page begins; null after the last. */
  readonly next: string | null;
}

/** Reads the answer of ListObjectsV2 (Amazon S3 API Reference). Names are those behind `prefix`. */
export function parseListPage(xml: string, prefix: string): ListPage {
  const isEncoded = /<EncodingType>url<\/EncodingType>/.test(xml);
  const nameOf = (key = ''): string =>
    (isEncoded ? decodeURIComponent(key.replaceAll('+', ' ')) : key).slice(prefix.length);
  const entries = [...xml.matchAll(/<Contents>(.*?)<\/Contents>/gs)].map(([, item]): Entry => {
    const modifiedMs = Date.parse(textOf(item!, 'LastModified') ?? '');
    return {
      name: nameOf(textOf(item!, 'Key')),
      size: Number(textOf(item!, 'Size')),
      version: quoted(textOf(item!, 'ETag') ?? ''),
      modifiedMs: Number.isNaN(modifiedMs) ? undefined : modifiedMs,
    };
  });
  const folders = [...xml.matchAll(/<CommonPrefixes>(.*?)<\/CommonPrefixes>/gs)].map(([, item]) =>
    nameOf(textOf(item!, 'Prefix')),
  );
  const isCut = textOf(xml, 'IsTruncated') === 'true';
  return { entries, folders, next: isCut ? (textOf(xml, 'NextContinuationToken') ?? null) : null };
}

/** As headers have it; some servers leave the quotes out in lists. */
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
