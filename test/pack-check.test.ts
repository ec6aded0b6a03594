import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { SampleDecodeError } from '@shardtool/base';
import { type ImageHeader, probeImage, stripMetadata } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import { type PackOptions, pack, verify } from '@shardtool/writer';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { Workbench } from './codec-workbench.js';
import { jpeg, newFolder, samplesOf, tree } from './pack-workbench.js';
import { TIMES } from './repetitions.js';

const FOLDER = 'test/fixtures/odd-images';
const HEADERS = 'test/fixtures/image-headers';

/** The columns "pack" and "whole" of EXPECTED.md, one entry per file. */
const EXPECTED = readFileSync(path.join(FOLDER, 'EXPECTED.md'), 'utf8')
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter((cells) => /\.\w+$/.test(cells[1] ?? ''))
  .flatMap((cells) => cells[1]!.split(', ').map((file) => ({ file, packed: cells[2]!, whole: cells[3]! })));

/** Packs the odd images, with bad images in quarantine. Returns them by path. */
async function packOdd(options: PackOptions) {
  const output = newFolder();
  const report = await pack(FOLDER, output, {
    workers: 1,
    onBad: 'quarantine',
    maxBad: 1,
    exclude: ['*.md'],
    ...options,
  });
  const lines = readFileSync(path.join(output, 'quarantine.jsonl'), 'utf8').trimEnd().split('\n');
  const reasons = new Map(lines.map((line) => JSON.parse(line)).map(({ path: file, reason }) => [file, reason]));
  return { output, report, reasons, samples: await samplesOf(output) };
}

describe('check decode', async () => {
  const { output, report, reasons, samples } = await packOdd({ check: 'decode' });
  const kept = new Set(samples.map(({ source }) => source));

  test.each(EXPECTED)('$file: pack $packed, whole $whole', ({ file, packed, whole }) => {
    if (packed.startsWith('in') && whole.startsWith('good')) expect(kept.has(file)).toBe(true);
    else if (whole.startsWith('bad')) expect(reasons.get(file)).toMatch(/ cannot be fully decoded: \S.*[^.]\.$/);
    else expect(reasons.get(file)).not.toContain('whole');
    expect(kept.has(file)).toBe(!reasons.has(file));
  });

  test('bytes, index and shards equal those of a pack without the check, and verify finds no faults', async () => {
    const bad = EXPECTED.filter(({ file }) => !kept.has(file)).map(({ file }) => file);
    const plain = newFolder();
    await pack(FOLDER, plain, { workers: 1, exclude: ['*.md', ...bad] });
    const other = newFolder();
    await pack(FOLDER, other, { workers: 1, check: 'decode', exclude: ['*.md', ...bad] });
    for (const file of ['dataset.json', '000000.tar', '000000.parquet']) {
      expect(sha256(readFileSync(path.join(other, file)))).toBe(sha256(readFileSync(path.join(plain, file))));
    }
    expect(await verify(output, { workers: 1, check: 'decode' })).toMatchObject({
      faults: 0,
      warnings: report.warnings,
    });
  });

  test('an odd image that can be decoded is counted', () => {
    // libvips does not notice stray bytes before the end marker.
    expect(report.warnings).toBe(process.env.SHARDTOOL_CODEC === undefined ? 1 : report.warnings);
    expect(report.renamed).toBe(2);
  });
});

test('check decode ends the pack at a truncated image, unless bad images are quarantined', async () => {
  const cut = readFileSync(path.join(FOLDER, 'truncated-half.jpg'));
  const source = tree({ 'a/1.jpg': jpeg(1), 'a/2.jpg': cut });
  await expect(pack(source, newFolder(), { workers: 1, check: 'decode' })).rejects.toThrow(
    /2\.jpg cannot be fully decoded: .*onBad: "quarantine"/,
  );
  expect(await pack(source, newFolder(), { workers: 1 })).toMatchObject({ samples: 2, warnings: 0 });
  const found = await shardtool(
    'pack',
    source,
    newFolder(),
    '--check',
    'decode',
    '--on-bad',
    'quarantine',
    '--max-bad',
    '100%',
  );
  expect(found).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('1 file is bad') });
});

test('images with a side that is too short, or with too many pixels, are bad', async () => {
  const { reasons, samples } = await packOdd({ minSize: 64, maxPixels: 70_000 });
  expect(reasons.get('one-pixel.jpg')).toMatch(/one-pixel\.jpg has 1x1 pixels, but minSize is 64\.$/);
  expect(reasons.get('gray-16bit.png')).toMatch(/has 64x48 pixels/);
  expect(reasons.get('strip-3x2000.jpg')).toMatch(/has 3x2000 pixels/);
  expect(reasons.get('odd-size-317x239.jpg')).toMatch(/claims 317x239 pixels, more than the limit of 70000/);
  for (const { size } of samples) {
    expect(Math.min(...size)).toBeGreaterThanOrEqual(64);
    expect(size[0]! * size[1]!).toBeLessThanOrEqual(70_000);
  }
  const { code, stderr } = await shardtool(
    'pack',
    FOLDER,
    newFolder(),
    '--min-size',
    '64',
    '--include',
    'one-pixel.jpg',
  );
  expect([code, stderr]).toEqual([1, expect.stringMatching(/has 1x1 pixels, but --min-size is 64\./)]);
});

test('the bytes of packed files do not include those of bad files, in a dry run too', async () => {
  const [good, small] = [readFileSync(path.join(FOLDER, 'gray-16bit.png')), jpeg(1)];
  const source = tree({ 'a/good.png': good, 'a/good.json': '{}', 'a/small.jpg': small, 'a/small.txt': 'three' });
  const options = { workers: 1, onBad: 'quarantine', maxBad: 1, minSize: 2 } as const;
  const expected = { files: 2, quarantined: 1, sourceBytes: good.length + 2 };
  expect(await pack(source, newFolder(), { ...options, dryRun: true, check: 'header' })).toMatchObject(expected);
  expect(await pack(source, newFolder(), options)).toMatchObject(expected);
});

test('raising maxPixels accepts a larger image', async () => {
  const large = 'claims-65500x65500.jpg';
  const options = { files: [large], onBad: 'quarantine', maxBad: 1 } as const;
  await expect(pack(FOLDER, newFolder(), options)).resolves.toMatchObject({ quarantined: 1 });
  await expect(pack(FOLDER, newFolder(), { workers: 1, ...options, maxPixels: 65_500 ** 2 })).resolves.toMatchObject({
    samples: 1,
  });
});

/** Images of every kind that can be stripped, with metadata whose content must not be found afterwards. */
const SECRET = 'the place where it was taken';

function withMetadata(file: string): Buffer {
  const bytes = readFileSync(file);
  const text = Buffer.from(SECRET);
  if (file.endsWith('.png')) return insert(bytes, 33, pngChunk('tEXt', text));
  if (file.endsWith('.gif')) return insert(bytes, 13 + 3 * 2 ** ((bytes[10]! & 7) + 1), gifComment(text));
  if (file.endsWith('.webp')) return riff(Buffer.concat([bytes, riffChunk('XMP ', text)]));
  const segment = (marker: number, head: string) => {
    const data = Buffer.concat([Buffer.from(head, 'latin1'), text]);
    return Buffer.concat([Buffer.from([0xff, marker, 0, data.length + 2]), data]);
  };
  const segments = [
    segment(0xe1, 'http://ns.adobe.com/xap/1.0/\0'),
    segment(0xed, 'Photoshop 3.0\0'),
    segment(0xfe, ''),
  ];
  return Buffer.concat([insert(bytes, 2, Buffer.concat(segments)), text]);
}

function insert(bytes: Buffer, at: number, more: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, at), more, bytes.subarray(at)]);
}

function pngChunk(type: string, data: Buffer): Buffer {
  const frame = Buffer.alloc(12 + data.length);
  frame.writeUInt32BE(data.length);
  frame.write(type, 4, 'latin1');
  data.copy(frame, 8);
  return frame;
}

function gifComment(text: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x21, 0xfe, text.length]), text, Buffer.from([0])]);
}

function riffChunk(type: string, data: Buffer): Buffer {
  const head = Buffer.from(`${type}\0\0\0\0`, 'latin1');
  head.writeUInt32LE(data.length, 4);
  return Buffer.concat([head, data, Buffer.alloc(data.length % 2)]);
}

function riff(bytes: Buffer): Buffer {
  bytes.writeUInt32LE(bytes.length - 8, 4);
  return bytes;
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

const STRIPPED = [
  ...EXPECTED.filter(({ packed, whole }) => packed.startsWith('in') && whole === 'good').map(
    ({ file }) => `${FOLDER}/${file}`,
  ),
  ...['animated.webp', 'plain.webp', 'turned-6.png', 'turned-6.webp'].map((file) => `${HEADERS}/${file}`),
].filter((file) => /\.(jpg|png|gif|webp)$/.test(file));

const originals = STRIPPED.map((file) => {
  const named = path.extname(file).includes(probeImage(readFileSync(file)).kind.slice(0, 2));
  return { file, bytes: named ? withMetadata(file) : readFileSync(file) };
});

test.each(originals)('$file without its metadata has the same header', ({ bytes }) => {
  const header = probeImage(bytes);
  const stripped = Buffer.from(stripMetadata(bytes, header)!);
  expect(probeImage(stripped)).toEqual(header);
  expect(stripped.includes(SECRET)).toBe(false);
  expect(stripped.includes('http://ns.adobe.com')).toBe(false);
  expect(sha256(stripMetadata(stripped, header)!)).toBe(sha256(stripped));
});

test('images without their metadata have the same pixels and orientation', async () => {
  const name = (file: string, i: number) => `${i}${path.extname(file)}`;
  const source = tree(Object.fromEntries(originals.map(({ file, bytes }, i) => [name(file, i), bytes])));
  const before = await pixelsOf(source, {});
  const after = await pixelsOf(source, { stripMetadata: true, check: 'decode' });
  expect(before.size).toBe(originals.length);
  for (const [i, { file }] of originals.entries()) expect(after.get(`${i}`), file).toEqual(before.get(`${i}`));
});

/** Size and hash of the pixels of each image by its key, rotated by its orientation. */
async function pixelsOf(source: string, options: PackOptions): Promise<ReadonlyMap<string, unknown>> {
  const output = newFolder();
  await pack(source, output, options);
  await using dataset = await openDataset(output);
  const loader = dataset.loader({ workers: 1, collate: 'list', applyExifOrientation: true });
  const found = new Map<string, unknown>();
  for await (const { keys, list } of loader) {
    for (const [i, { width, height, pixels }] of list!.entries()) found.set(keys[i]!, [width, height, sha256(pixels)]);
  }
  await loader.close();
  return found;
}

test('an image whose metadata cannot be removed is packed unchanged and counted', async () => {
  const source = tree({
    'a.tif': readFileSync(`${FOLDER}/picture.tif`),
    'b.avif': readFileSync(`${HEADERS}/plain.avif`),
  });
  const output = newFolder();
  expect(await pack(source, output, { workers: 1, stripMetadata: true })).toMatchObject({
    samples: 2,
    metadataKept: 2,
  });
  const [first] = await samplesOf(output);
  expect(sha256(Buffer.from(Object.values(first!.fields)[0]!, 'latin1'))).toBe(
    sha256(readFileSync(path.join(source, first!.source))),
  );
  const { stdout } = await shardtool('pack', source, newFolder(), '--strip-metadata');
  expect(stdout).toContain('2 images keep their metadata, since they are TIFF, AVIF, BMP or PPM, or are damaged');
});

/** Image files, truncated or with changed bytes anywhere. */
const damaged = fc
  .record({
    image: fc.constantFrom(...originals.map(({ bytes }) => bytes).filter((bytes) => bytes.length < 40_000)),
    cut: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, fc.double({ min: 0, max: 1, noNaN: true })),
    flips: fc.array(fc.tuple(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), fc.nat(255)), {
      maxLength: 4,
    }),
    // Some among the first bytes, where the metadata are.
    isFront: fc.boolean(),
  })
  .map(({ image, cut, flips, isFront }) => {
    const bytes = Buffer.from(image.subarray(0, Math.ceil(cut * image.length)));
    const end = isFront ? Math.min(bytes.length, 400) : bytes.length;
    for (const [at, value] of flips) if (end > 0) bytes[Math.floor(at * end)] = value;
    return bytes;
  });

test('a damaged image has the same pixels without its metadata, or is unchanged', async () => {
  const workbench = await Workbench.open();
  const look = async (bytes: Uint8Array) => {
    try {
      const { width, height, pixels, warnings } = await workbench.decode(bytes);
      return { width, height, warnings, pixels: sha256(pixels) };
    } catch (error) {
      if (!(error instanceof SampleDecodeError)) throw error;
      return 'it cannot be decoded';
    }
  };
  await fc.assert(
    fc.asyncProperty(damaged, async (bytes) => {
      let header: ImageHeader;
      try {
        header = probeImage(bytes, undefined, 1_000_000);
      } catch {
        return;
      }
      const stripped = stripMetadata(bytes, header);
      if (stripped === null) return;
      // Only an orientation is added.
      expect(stripped.length).toBeLessThanOrEqual(bytes.length + 60);
      expect(await look(stripped)).toEqual(await look(bytes));
    }),
    { numRuns: 400 * TIMES },
  );
});

test('a JPEG with an unexpected marker in its coded data keeps its metadata, and is counted', async () => {
  const photo = withMetadata(`${FOLDER}/subsampling-444.jpg`);
  const scan = photo.indexOf(Buffer.from([0xff, 0xda]));
  const middle = scan + Math.floor((photo.length - scan) / 2);
  const sources: Record<string, Buffer> = {};
  // A reserved marker, tables, the start and the end of an image; what follows reads as a length.
  for (const marker of [0x9f, 0xc4, 0xd8, 0xd9, 0xe1]) {
    const bytes = Buffer.from(photo);
    bytes.set([0xff, marker, 0x03, 0x11], middle);
    sources[`${marker}.jpg`] = bytes;
  }
  const source = tree(sources);
  const output = newFolder();
  expect(await pack(source, output, { stripMetadata: true })).toMatchObject({ samples: 5, metadataKept: 5 });
  for (const { source: file, fields } of await samplesOf(output))
    expect(fields.jpg).toBe(sources[file]!.toString('latin1'));
});
