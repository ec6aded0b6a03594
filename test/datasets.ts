import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type PackOptions, pack } from '@shardtool/writer';
import { afterAll } from 'vitest';

const folders: string[] = [];

afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** An empty folder that is removed after the tests of the file. */
export function emptyFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'shardtool-'));
  folders.push(folder);
  return folder;
}

/** The 60 example photos in shards: ten samples each unless `options` say otherwise. */
export async function packedPhotos(options: PackOptions = {}): Promise<string> {
  const output = path.join(emptyFolder(), 'shards');
  await pack('examples/photos', output, { maxShardSamples: 10, ...options });
  return output;
}
