import { createHash, createHmac } from 'node:crypto';
import { OptionError, option, sentence } from '@shardtool/base';
import { SignatureV4 } from '@smithy/signature-v4';
import type { HttpRequest } from '../http/exchange.js';
import { type Credentials, type Provider, providerFor } from './credentials.js';
import type { BucketPlace } from './place.js';

/** Implements the hash that the signer requires with Node's own. */
class Sha256 {
  readonly #secret: Uint8Array | string | undefined;
  #hash;

  constructor(secret?: unknown) {
    this.#secret = secret as Uint8Array | string | undefined;
    this.#hash = this.#make();
  }
  update(data: Uint8Array | string): void {
    this.#hash.update(data);
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
  reset(): void {
    this.#hash = this.#make();
  }
  #make() {
    return this.#secret === undefined ? createHash('sha256') : createHmac('sha256', this.#secret);
  }
}

/** Signs requests. Credentials are looked up for the first request, and renewed before they expire. */
export class Signing {
  readonly #place: BucketPlace;
  #provider: Promise<Provider> | null = null;
  /** Difference between the clock of the server and that of this machine, in milliseconds. */
  #skewMs = 0;

  constructor(place: BucketPlace) {
    this.#place = place;
  }

  /** True if the signature covers the body as well. With https, the connection protects the body. */
  coversBody(url: URL): boolean {
    return !this.#place.unsigned && url.protocol !== 'https:';
  }

  /** Throws {@link OptionError} if there are no credentials. */
  async sign(request: HttpRequest, region: string): Promise<HttpRequest> {
    const { unsigned, requesterPays } = this.#place;
    const headers: Record<string, string> = { ...request.headers };
    if (requesterPays) headers['x-amz-request-payer'] = 'requester';
    if (unsigned) return { ...request, headers };
    const { url, body } = request;
    headers.host = url.host;
    headers['x-amz-content-sha256'] =
      body !== undefined && !this.coversBody(url)
        ? 'UNSIGNED-PAYLOAD'
        : createHash('sha256')
            .update(body ?? '')
            .digest('hex');
    const credentials = await this.#credentials();
    const signer = new SignatureV4({
      service: 's3',
      region,
      credentials,
      sha256: Sha256 as never,
      uriEscapePath: false,
      applyChecksum: false,
    });
    const signed = await signer.sign(
      {
        method: request.method,
        protocol: url.protocol,
        hostname: url.hostname,
        path: url.pathname,
        query: Object.fromEntries(url.searchParams),
        headers,
      },
      { signingDate: new Date(Date.now() + this.#skewMs) },
    );
    return { ...request, headers: signed.headers };
  }

  /** The answer contains the current time of the server. */
  correctClock(date: string | undefined): void {
    const serverMs = Date.parse(date ?? '');
    if (!Number.isNaN(serverMs)) this.#skewMs = serverMs - Date.now();
  }

  /** Looks for credentials other than those of a rejected request. Returns false if there are none. */
  async renew({ headers }: HttpRequest): Promise<boolean> {
    const provider = await this.#provider;
    if (provider === null) return false;
    const isOther = ({ accessKeyId, sessionToken }: Credentials): boolean =>
      !headers.authorization?.includes(`Credential=${accessKeyId}/`) ||
      headers['x-amz-security-token'] !== sessionToken;
    // If many requests are refused at once, the first one renews the credentials for all of them.
    const now = await provider();
    return isOther(now) || isOther(await provider({ forceRefresh: true }).catch(() => now));
  }

  async #credentials(): Promise<Credentials> {
    this.#provider ??= providerFor(this.#place.scheme);
    try {
      return await (await this.#provider)();
    } catch (cause) {
      const { scheme, bucket } = this.#place;
      const how =
        scheme === 'gs'
          ? 'GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY (an HMAC key)'
          : 'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE';
      throw new OptionError(
        { path: `${scheme}://${bucket}` },
        sentence`Found no credentials for ${scheme}://${bucket}: set ${how}. If the bucket is public, set ${option('unsigned')}.`,
        { cause },
      );
    }
  }
}
