import type { Entry } from '../storage.js';

/** One page of ListObjectsV2, asked for with `encoding-type=url`. */
export interface ListPage {
  readonly entries: readonly Entry[];
  /** Where the next page begins; null after the last. */
  readonly next: string | null;
}

/** Reads the answer of ListObjectsV2 (Amazon S3 API Reference). Names are those behind `prefix`. */
export function parseListPage(xml: string, prefix: string): ListPage {
  const isEncoded = /<EncodingType>url<\/EncodingType>/.test(xml);
  const entries = [...xml.matchAll(/<Contents>(.*?)<\/Contents>/gs)].map(([, item]): Entry => {
    const key = textOf(item!, 'Key') ?? '';
    const name = isEncoded ? decodeURIComponent(key.replaceAll('+', ' ')) : key;
    return {
      name: name.slice(prefix.length),
      size: Number(textOf(item!, 'Size')),
      version: textOf(item!, 'ETag') ?? '',
    };
  });
  const isCut = textOf(xml, 'IsTruncated') === 'true';
  return { entries, next: isCut ? (textOf(xml, 'NextContinuationToken') ?? null) : null };
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
