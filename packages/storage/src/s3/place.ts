import { OptionError } from '@shardtool/base';
import { schemeOf } from '../location/location.js';
import type { StorageOptions } from '../storage.js';

/** A bucket, and the prefix of every name in it. */
export interface BucketPlace {
  readonly scheme: 's3' | 'gs';
  readonly bucket: string;
  /** '' or ends with a slash. */
  readonly prefix: string;
  /** Another server than the scheme's own, without a slash at its end. */
  readonly endpoint: string | null;
  readonly region: string;
  readonly unsigned: boolean;
  readonly requesterPays: boolean;
}

const GOOGLE = 'https://storage.googleapis.com';

/** Reads a location and the environment. Throws {@link OptionError}. */
export function bucketPlace(location: string, options: StorageOptions, env: NodeJS.ProcessEnv): BucketPlace {
  const scheme = schemeOf(location) as 's3' | 'gs';
  const [bucket = '', ...rest] = location.replace(/^[a-z0-9]+:\/\//i, '').split('/');
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(bucket)) {
    throw new OptionError({ path: location }, `${location} does not name a bucket: write ${scheme}://bucket/prefix.`);
  }
  const prefix = rest.join('/').replace(/\/+$/, '');
  const given = options.endpointUrl ?? (scheme === 'gs' ? undefined : env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL);
  const endpoint = given ?? (scheme === 'gs' ? GOOGLE : null);
  if (endpoint !== null && !/^https?:\/\/[^/]/.test(endpoint)) {
    throw new OptionError({}, 'The endpoint of S3 is invalid: it must be a URL that begins with https:// or http://.');
  }
  return {
    scheme,
    bucket,
    prefix: prefix === '' ? '' : `${prefix}/`,
    endpoint: endpoint?.replace(/\/+$/, '') ?? null,
    region: options.region ?? (scheme === 'gs' ? 'auto' : env.AWS_REGION || env.AWS_DEFAULT_REGION || 'us-east-1'),
    unsigned: options.unsigned ?? env.SHARDTOOL_UNSIGNED === '1',
    requesterPays: options.requesterPays ?? env.SHARDTOOL_REQUESTER_PAYS === '1',
  };
}

/**
 * The URL of a key, or of the bucket itself if no key is given. If the bucket reported its region, the host name of
 * Amazon contains it.
 */
export function urlOf({ bucket, endpoint }: BucketPlace, region: string, key = ''): URL {
  const path = key.split('/').map(escaped).join('/');
  const isPathStyle = endpoint !== null || bucket.includes('.');
  const base =
    endpoint ?? (isPathStyle ? `https://s3.${region}.amazonaws.com` : `https://${bucket}.s3.${region}.amazonaws.com`);
  return new URL(`${base}${isPathStyle ? `/${bucket}` : ''}/${path}`);
}

/** Escapes characters as RFC 3986 defines, which is the form that a signature of version 4 covers. */
export function escaped(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}
