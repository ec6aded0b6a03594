/** Every kind of storage that a browser can read. */
import { openHttp } from './http/http-storage.js';
import type { Open } from './scheme-table.js';

export const SCHEMES: Readonly<Record<string, () => Promise<Open>>> = {
  http: async () => openHttp,
  https: async () => openHttp,
};
