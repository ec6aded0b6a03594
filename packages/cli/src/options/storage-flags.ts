import { escapeControls } from '@shardtool/base/text';
import type { Retry } from '@shardtool/storage';
import type { FlagTable } from '../command.js';
import { isJsonLog, log } from '../terminal/log.js';

const group = 'Storage';

/** Options of every command that takes a location, which may be remote. */
export const STORAGE_FLAGS = {
  'endpoint-url': {
    type: 'string',
    requiresArg: true,
    group,
    placeholder: 'URL',
    describe: 'S3: server to use instead of Amazon',
  },
  unsigned: { type: 'boolean', group, describe: 'S3: send no credentials, for public buckets' },
  'requester-pays': { type: 'boolean', group, describe: 'S3: use Requester Pays' },
} as const satisfies FlagTable;

interface StorageGiven {
  readonly endpointUrl?: string | undefined;
  readonly unsigned?: boolean | undefined;
  readonly requesterPays?: boolean | undefined;
}

/** Applies the options to everything that this process and its threads open, by setting the environment variables of the same meaning. */
export async function useStorageFlags({ endpointUrl, unsigned, requesterPays }: StorageGiven): Promise<void> {
  if (endpointUrl !== undefined) process.env.AWS_ENDPOINT_URL_S3 = endpointUrl;
  if (unsigned === true) process.env.SHARDTOOL_UNSIGNED = '1';
  if (requesterPays === true) process.env.SHARDTOOL_REQUESTER_PAYS = '1';
  // Without a terminal, the reader itself warns of the first retry.
  if (!process.stderr.isTTY && !isJsonLog()) return;
  const { onRetry } = await import('@shardtool/storage');
  onRetry(showRetry);
}

let retries = 0;
let lastLine = 0;
/** As JSON, retries after the first are reported this often. */
const LINE_EVERY_MS = 30_000;

/** Shows retries: on a terminal one line, rewritten each time; in a JSON log the first retry, and then one line every 30 s. */
function showRetry({ location, reason, waitMs }: Retry): void {
  retries++;
  const line = `${location}: ${reason}; retry ${retries}, in ${(waitMs / 1000).toFixed(1)} s`;
  if (isJsonLog()) {
    const now = performance.now();
    if (retries > 1 && now - lastLine < LINE_EVERY_MS) return;
    lastLine = now;
    log('warning', escapeControls(line), { event: 'retry', location, reason, retry: retries, waitMs });
    return;
  }
  const plain = line.replace(/[^\x20-\x7e]/g, '?').slice(0, (process.stderr.columns ?? 80) - 1);
  process.stderr.write(`\r\x1b[K${plain}`);
  if (retries === 1) process.once('exit', () => process.stderr.write('\n'));
}
