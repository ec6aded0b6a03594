import { execFileSync } from 'node:child_process';
import { createReadStream, createWriteStream, mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { openDataset } from '@shardtool/reader';
import { type ConvertOptions, convert, pack, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { emptyFolder } from '../datasets.js';
import { JPEG, newFolder } from '../pack-workbench.js';

const MINUTES = 60_000;
const GIB = 2 ** 30;
/** More than Node writes at once, and more than a signed 32-bit number. */
const HUGE_BYTES = 2_300_000_000;

const source = emptyFolder();
mkdirSync(path.join(source, 'a'));
writeFileSync(path.join(source, 'a', '1.jpg'), JPEG);
writeFileSync(path.join(source, 'a', '1.bin'), '');
truncateSync(path.join(source, 'a', '1.bin'), HUGE_BYTES);

test.each(['tar', 'msgpack', 'lmdb'] as const)(
  'a field of 2.3 GB is written to %s and read back',
  async (format) => {
    const output = newFolder();
    await pack(source, output, { format, maxSampleBytes: 4 * GIB });
    expect(await verify(output)).toMatchObject({ faults: 0, samples: 1 });
    await using dataset = await openDataset(output, { maxSampleBytes: 4 * GIB });
    expect((await dataset.get('a/1')).fields.bin).toHaveLength(HUGE_BYTES);
    await expect(openDataset(output).then((small) => small.get('a/1'))).rejects.toMatchObject({
      name: 'SampleSizeError',
      key: 'a/1',
    });
    await using tars = await openDataset(await converted(output, { format: 'tar' }));
    expect(tars.bytes).toBeGreaterThan(HUGE_BYTES);
  },
  10 * MINUTES,
);

async function converted(input: string, options: ConvertOptions): Promise<string> {
  const output = newFolder();
  await convert(input, output, { maxSampleBytes: 4 * GIB, ...options });
  return output;
}

test.each(['msgpack', 'lmdb'] as const)(
  '%s rejects a field that is too long for its format, and a tar accepts it',
  async (format) => {
    const larger = emptyFolder();
    writeFileSync(path.join(larger, '1.jpg'), JPEG);
    writeFileSync(path.join(larger, '1.bin'), '');
    truncateSync(path.join(larger, '1.bin'), 4 * GIB + 1);
    const options = { maxSampleBytes: 8 * GIB, workers: 1 };
    await expect(pack(larger, newFolder(), { ...options, format })).rejects.toThrow(
      /\.(msgpack|lmdb).* or (write|pack to) tar/,
    );
    if (format === 'msgpack') expect(await pack(larger, newFolder(), options)).toMatchObject({ samples: 1 });
  },
  10 * MINUTES,
);

/** Runs a conversion in a separate process and returns its peak memory in bytes. */
function peakOf(file: string, maxSampleBytes: number): number {
  const script = `
    import { convert } from '@shardtool/writer';
    await convert(${JSON.stringify(file)}, ${JSON.stringify(newFolder())}, { maxSampleBytes: ${maxSampleBytes} }).catch((error) => {
      if (error.name !== 'SampleSizeError') throw error;
    });
    console.log(process.resourceUsage().maxRSS * 1024);`;
  return Number(execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }));
}

test(
  'a compressed tar with an entry of 1.5 GB of zeros uses 200 MB of memory, whether it is rejected or converted',
  async () => {
    const shard = await tarOfZeros(1_500_000_000);
    expect(peakOf(shard, GIB)).toBeLessThan(200e6);
    expect(peakOf(shard, 2 * GIB)).toBeLessThan(200e6);
  },
  10 * MINUTES,
);

async function tarOfZeros(bytes: number): Promise<string> {
  const folder = emptyFolder();
  const [input, tar] = [path.join(folder, 'in'), path.join(folder, 'a.tar.gz')];
  mkdirSync(input);
  writeFileSync(path.join(input, '1.jpg'), JPEG);
  writeFileSync(path.join(input, '1.bin'), '');
  truncateSync(path.join(input, '1.bin'), bytes);
  const packed = newFolder();
  await pack(input, packed, { maxSampleBytes: 4 * GIB });
  const shard = createReadStream(path.join(packed, '000000.tar'));
  await pipeline(shard, createGzip({ level: 1 }), createWriteStream(tar));
  return tar;
}
