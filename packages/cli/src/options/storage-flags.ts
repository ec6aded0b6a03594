import type { Retry } from '@shardtool/storage';

const group = 'Remote places (s3://, gs://, https://, hf://):';

/** The flags of every command, since each may be given a location. */
export const STORAGE_FLAGS = {
  'endpoint-url': { type: 'string', requiresArg: true, group, describe: "S3: another server than Amazon's" },
  unsigned: { type: 'boolean', group, describe: 'S3: without credentials, as public buckets allow' },
  'requester-pays': { type: 'boolean', group, describe: 'S3: whoever reads pays' },
} as const;

interface StorageGiven {
  readonly endpointUrl?: string | undefined;
  readonly unsigned?: boolean | undefined;
  readonly requesterPays?: boolean | undefined;
}

/** Takes up the flags for all that this process and its threads open, by the variables that say the same. */
export async function useStorageFlags({ endpointUrl, unsigned, requesterPays }: StorageGiven): Promise<void> {
  if (endpointUrl !== undefined) process.env.AWS_ENDPOINT_URL_S3 = endpointUrl;
  if (unsigned === true) process.env.SHARDTOOL_UNSIGNED = '1';
  if (requesterPays === true) process.env.SHARDTOOL_REQUESTER_PAYS = '1';
  if (!process.stderr.isTTY) return;
  const { onRetry } = await import('@shardtool/storage');
  onRetry(showRetry);
}

let retries = 0;

/** One line on a terminal, written anew with each retry. */
function showRetry({ location, reason, waitMs }: Retry): void {
  retries++;
  const line = `${location}: ${reason}; retry ${retries}, in ${(waitMs / 1000).toFixed(1)} s`;
  const plain = line.replace(/[^\x20-\x7e]/g, '?').slice(0, (process.stderr.columns ?? 80) - 1);
  process.stderr.write(`\r\x1b[K${plain}`);
  if (retries === 1) process.once('exit', () => process.stderr.write('\n'));
}
