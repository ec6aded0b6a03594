import { readFileSync } from 'node:fs';
import path from 'node:path';
import { type LoaderOptions, openDataset } from '@shardtool/reader';
import { type Fault, pack, verify } from '@shardtool/writer';
import { afterAll, describe, expect, test } from 'vitest';
import { newFolder, samplesOf } from './pack-workbench.js';
import { pythonWith, runPython } from './python.js';

// Checks every cell of the table in EXPECTED.md: the results of pack, check decode, a loader and Pillow for each odd image.
const folder = 'test/fixtures/odd-images';
const python = pythonWith('PIL');

interface Row {
  readonly file: string;
  readonly pack: string;
  readonly whole: string;
  readonly read: string;
  readonly pillow: string;
}

/** The rows of the table, one per file, although some lines of it list several. */
const rows: Row[] = readFileSync(path.join(folder, 'EXPECTED.md'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| file'))
  .flatMap((line) => {
    const [files, packing, whole, read, pillow] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
    return files!.split(', ').map((file) => ({ file, pack: packing!, whole: whole!, read: read!, pillow: pillow! }));
  });

const shards = newFolder();
await pack(folder, shards, {
  workers: 1,
  files: rows.map(({ file }) => file),
  shuffle: false,
  onBad: 'quarantine',
  maxBad: 1,
});
const samples = new Map((await samplesOf(shards)).map((sample) => [sample.source, sample]));
const quarantine = readFileSync(path.join(shards, 'quarantine.jsonl'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line): string => JSON.parse(line).path);
const faults: Fault[] = [];
const verified = await verify(shards, { workers: 1, check: 'decode', onFault: (fault) => faults.push(fault) });
const dataset = await openDataset(shards);
afterAll(() => dataset.close());
const keyOf = (file: string) => samples.get(file)!.key;

test('images that the table calls "in" are in the shards, and those that it calls "out" are quarantined', () => {
  expect(rows).toHaveLength(30);
  const files = (outcome: string) => rows.filter((row) => row.pack.startsWith(outcome)).map(({ file }) => file);
  expect([...samples.keys()].sort()).toEqual(files('in').sort());
  expect([...quarantine].sort()).toEqual(files('out').sort());
});

describe('whole', () => {
  test.each(rows.filter(({ whole }) => whole !== '-'))('$file: $whole', ({ file, whole }) => {
    const fault = faults.find(({ key }) => key === keyOf(file));
    if (whole.startsWith('bad')) expect(fault?.reason).toMatch(/cannot be fully decoded/);
    else expect(fault).toBeUndefined();
  });

  test('only one file is good with warnings, which are counted if the decoder reports them', () => {
    expect(rows.filter(({ whole }) => whole.includes('warnings')).map(({ file }) => file)).toEqual([
      'flipped-bits.jpg',
    ]);
    // libvips does not notice stray bytes before the end marker.
    expect(verified.warnings).toBe(process.env.SHARDTOOL_CODEC === undefined ? 1 : verified.warnings);
  });
});

interface Image {
  readonly width: number;
  readonly height: number;
  readonly pixels: Buffer;
}

/** The image of one file as the loader delivers it. */
async function read(file: string, options: LoaderOptions = {}): Promise<Image> {
  const loader = dataset.loader({ keys: [keyOf(file)], workers: 1, collate: 'list', ...options });
  for await (const { list } of loader) return { ...list![0]!, pixels: Buffer.from(list![0]!.pixels) };
  throw new Error('there was no batch');
}

/** The images of one loop over all files, by their keys: a loop for each file would take too long. Bad images are missing. */
const images = new Map<string, Image>();
for await (const { keys, valid, list } of dataset.loader({ workers: 1, collate: 'list', onBad: 'skip' })) {
  for (const [row, image] of list!.entries()) {
    if (valid[row] === 1) images.set(keys[row]!, { ...image, pixels: Buffer.from(image.pixels) });
  }
}

describe('read', () => {
  test.each(rows.filter(({ read: cell }) => cell !== '-'))('$file: $read', async ({ file, read: cell }) => {
    if (cell === 'bad' || cell.includes('else bad')) {
      await expect(read(file)).rejects.toThrow(`sample "${keyOf(file)}" cannot be used`);
      return;
    }
    const image = images.get(keyOf(file))!;
    const [width, height] = samples.get(file)!.size;
    expect([image.width, image.height, image.pixels.length]).toEqual([width, height, width! * height! * 3]);
    if (cell.includes('three equal channels')) {
      const isGray = (at: number) =>
        image.pixels[at] === image.pixels[at + 1] && image.pixels[at] === image.pixels[at + 2];
      for (let at = 0; at < image.pixels.length; at += 3) expect(isGray(at)).toBe(true);
    }
    if (cell.includes('turned with applyExifOrientation')) {
      const turned = await read(file, { applyExifOrientation: true });
      expect([turned.width, turned.height]).toEqual([height, width]);
    }
    if (cell.includes('resized to 224')) {
      const transform = [{ name: 'resize', size: [224, 224] }] as const;
      expect(await read(file, { transform })).toMatchObject({ width: 224, height: 224 });
    }
  });

  test('a crop above the truncation of truncated-half.jpg has pixels, and any other crop is bad', async () => {
    const loader = dataset.loader({
      keys: [keyOf('truncated-half.jpg')],
      ...{ workers: 1, epochsPerLoop: 40, onBad: 'skip', transform: [{ name: 'randomCrop', size: [60, 200] }] },
    });
    const valid: number[] = [];
    for await (const batch of loader) {
      valid.push(batch.valid[0]!);
      expect(new Set(batch.images).size > 20).toBe(batch.valid[0] === 1);
    }
    expect([valid.includes(1), valid.includes(0), valid.length]).toEqual([true, true, 40]);
  });
});

describe.skipIf(python === null)('Pillow', () => {
  /** The result of Pillow for each file: [width, height, RGB in base64], or null if it rejects the file. */
  const opened =
    python === null
      ? {}
      : runPython<Record<string, [number, number, string] | null>>(
          `
import base64, json, sys, warnings
from PIL import Image
warnings.simplefilter("error", Image.DecompressionBombWarning)
def read(path):
    try:
        image = Image.open(path).convert("RGB")
        return [image.width, image.height, base64.b64encode(image.tobytes()).decode()]
    except Exception:
        return None
print(json.dumps({name: read(sys.argv[1] + "/" + name) for name in json.load(sys.stdin)}))`,
          rows.map(({ file }) => file),
          python,
          [folder],
        );

  test.each(rows.filter(({ pillow }) => pillow === 'refuses'))('$file: $pillow', ({ file }) => {
    expect(opened[file]).toBeNull();
  });

  test.each(rows.filter(({ pillow }) => pillow !== 'refuses'))('$file: $pillow', ({ file, pillow }) => {
    const [width, height, base64] = opened[file]!;
    // Not packed, or converted from 16 to 8 bits in another way.
    if (pillow === 'reads it' || pillow === 'clips') return;
    const decoded = images.get(keyOf(file))!;
    expect([decoded.width, decoded.height]).toEqual([width, height]);
    const expected = Buffer.from(base64, 'base64');
    expect(Buffer.compare(expected, decoded.pixels)).toBe(0);
  });
});
