/** Every kind of storage, by the scheme of its locations. The code of a kind is loaded when its first location is opened. */
import { localPathOf } from './location/location.js';
import type { Storage, StorageOptions } from './storage.js';

export type Open = (location: string, options: StorageOptions) => Storage;

export const SCHEMES: Readonly<Record<string, () => Promise<Open>>> = {
  file: async () => {
    const { LocalStorage } = await import('./local.js');
    return (location) => new LocalStorage(localPathOf(location)!);
  },
  http: async () => (await import('./http/http-storage.js')).openHttp,
  https: async () => (await import('./http/http-storage.js')).openHttp,
  s3: async () => (await import('./s3/s3-storage.js')).openS3,
  gs: async () => (await import('./s3/s3-storage.js')).openS3,
  hf: async () => (await import('./hf/hf-storage.js')).openHub,
};
