/**
 * Test files of other projects: images against Pillow, tars against Python's tarfile, msgpack against its test suite. They are fetched with the
 * clients of their registries (pip, apt-get, go, npm) and kept for the next run. A corpus that cannot be fetched is skipped, with a message.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  DamagedShardError,
  EntryNameError,
  SampleDecodeError,
  ShardtoolError,
  UnsupportedEntryError,
} from '@shardtool/base';
import { imageKindOf, scanEntries } from '@shardtool/format';
import { expect, test } from 'vitest';
import { decodeHead, headBytes } from '#format/msgpack/object';
import { Scratch } from '#reader/codec/scratch';
import { openCodecs, openImage } from '#reader/codec/select';
import { pythonWith, runPython } from '../python.js';

const KEPT = path.resolve('node_modules/.cache/corpora');

/** Functions that fetch a corpus into a folder. Versions are fixed, because the tests list the files that differ. */
const CORPORA: Readonly<Record<string, (folder: string) => void>> = {
  pillow: (folder) => {
    run(folder, 'python3', '-m', 'pip', 'download', '-q', '--no-deps', '--no-binary', ':all:', 'pillow==11.3.0');
    run(folder, 'tar', '-xzf', 'pillow-11.3.0.tar.gz', 'pillow-11.3.0/Tests/images');
  },
  gdk: (folder) => debian(folder, 'gdk-pixbuf-tests'),
  goImage: (folder) => goModule(folder, 'golang.org/x/image@v0.24.0'),
  libpng: (folder) => debianSource(folder, 'libpng1.6'),
  libjpegTurbo: (folder) => debianSource(folder, 'libjpeg-turbo'),
  goStandardImage: (folder) => {
    const root = execFileSync('go', ['env', 'GOROOT'], { encoding: 'utf8' }).trim();
    run(folder, 'cp', '-r', path.join(root, 'src/image'), '.');
  },
  python: (folder) => debian(folder, 'libpython3.11-testsuite'),
  goTar: (folder) => {
    const root = execFileSync('go', ['env', 'GOROOT'], { encoding: 'utf8' }).trim();
    run(folder, 'cp', '-r', path.join(root, 'src/archive/tar/testdata'), '.');
  },
  msgpack: (folder) => {
    run(folder, 'npm', 'pack', '--silent', 'msgpack-test-suite@1.0.0');
    run(folder, 'tar', '-xzf', 'msgpack-test-suite-1.0.0.tgz');
  },
};

function run(cwd: string, command: string, ...args: string[]): void {
  execFileSync(command, args, { cwd, stdio: ['ignore', 'ignore', 'pipe'] });
}

function debian(folder: string, name: string): void {
  run(folder, 'apt-get', 'download', name);
  const [file] = readdirSync(folder).filter((found) => found.endsWith('.deb'));
  run(folder, 'dpkg-deb', '-x', file!, 'files');
}

/** Fetches the source of a package of Debian 12. The list of sources is kept in the folder, so the system is not changed. */
function debianSource(folder: string, name: string): void {
  const lists = path.join(folder, 'lists');
  mkdirSync(path.join(lists, 'partial'), { recursive: true });
  const key = '/usr/share/keyrings/debian-archive-keyring.gpg';
  // apt-get empties the folder of lists.
  const list = path.join(folder, 'sources.list');
  writeFileSync(list, `deb-src [signed-by=${key}] http://deb.debian.org/debian bookworm main\n`);
  const own = [`SourceList=${list}`, 'SourceParts=/dev/null'].map((option) => `Dir::Etc::${option}`);
  const caches = [`Dir::State::Lists=${lists}`, 'Dir::Cache::pkgcache=', 'Dir::Cache::srcpkgcache='];
  const options = [...own, ...caches].flatMap((option) => ['-o', option]);
  run(folder, 'apt-get', ...options, '-qq', 'update');
  run(folder, 'apt-get', ...options, '-qq', 'source', '--download-only', name);
  rmSync(lists, { recursive: true });
  const archive = readdirSync(folder).find((file) => file.includes('.orig.tar'));
  run(folder, 'tar', '-xf', archive!);
}

function goModule(folder: string, module: string): void {
  const text = execFileSync('go', ['mod', 'download', '-json', module], { cwd: folder, encoding: 'utf8' });
  run(folder, 'cp', '-r', (JSON.parse(text) as { readonly Dir: string }).Dir, 'files');
}

/** The files of a corpus; null if it cannot be fetched here. */
function corpus(name: string): readonly string[] | null {
  const folder = path.join(KEPT, name);
  if (!existsSync(folder)) {
    const part = `${folder}.part`;
    rmSync(part, { recursive: true, force: true });
    mkdirSync(part, { recursive: true });
    try {
      CORPORA[name]!(part);
    } catch (error) {
      console.error(
        `The corpus ${name} cannot be fetched, so its tests are skipped: ${(error as Error).message.split('\n')[0]}`,
      );
      return null;
    }
    renameSync(part, folder);
  }
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => path.join(folder, file));
  return files.filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true).sort();
}

interface Pixels {
  readonly width: number;
  readonly height: number;
  readonly sha256: string;
}

/** Enough bytes to recognise a kind of image. */
const SIGNATURE_BYTES = 64;
const MAX_PIXELS = 20_000_000;
const python = pythonWith('PIL');
const ofPillow = (files: readonly string[]) =>
  runPython<Record<string, (Pixels & { readonly mode: string }) | null>>(
    `
import hashlib, json, sys, warnings
from PIL import Image
warnings.simplefilter("ignore")
found = {}
for path in json.load(sys.stdin):
    try:
        with Image.open(path) as image:
            mode = image.mode
            rgb = image.convert("RGB")
            found[path] = {"mode": mode, "width": rgb.width, "height": rgb.height, "sha256": hashlib.sha256(rgb.tobytes()).hexdigest()}
    except Exception:
        found[path] = None
print(json.dumps(found))
`,
    files,
    python!,
  );

/** Pillow clips these modes when it converts them to RGB. */
const CLIPPED = /^(I|F)/;

/** Files on which the two differ, by their behaviour. Everything else has the same pixels, or is rejected by both. */
const EXCEPTIONS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  pillow: {
    // Pillow rotates a TIFF when it opens it. The other files have 16-bit colours with alpha, or inks.
    'other pixels': [
      'bmp/b/badrle.bmp',
      ...[2, 3, 4, 5, 6, 7, 8].map((orientation) => `g4_orientation_${orientation}.tif`),
      'tiff_16bit_RGBa.tiff',
      'tiff_strip_cmyk_16l_jpeg.tif',
      'tiff_strip_planar_16bit_RGBa.tiff',
    ],
    'only Pillow': [
      // A bitmap without a file header.
      'clipboard.dib',
      // libvips does not decode these TIFFs.
      '8bit.s.tif',
      'crash-0da013a13571cc8eb457a39fee8db18f8a3c7127.tif',
      'crash-74d2a78403a5a59db1fb0a2b8735ac068a75f6e3.tif',
      'hopper.Lab.tif',
      'hopper_bigtiff.tif',
      'hopper_lzma.tif',
      'lab-green.tif',
      'lab-red.tif',
      'lab.tif',
      'old-style-jpeg-compression-no-samplesperpixel.tif',
      'old-style-jpeg-compression.tif',
      'tiff_tiled_planar_16bit_RGB.tiff',
      'tiff_tiled_planar_16bit_RGBa.tiff',
      'tiff_tiled_planar_lzw.tiff',
      'tiff_tiled_planar_raw.tif',
    ],
    'only shardtool': [
      'apng/chunk_no_fctl.png',
      'bmp/b/badpalettesize.bmp',
      'bmp/g/rgb32bf.bmp',
      'bmp/q/pal8oversizepal.bmp',
      'bmp/q/rgb16-231.bmp',
      'bmp/q/rgb32-111110.bmp',
      'bmp/q/rgba16-4444.bmp',
      'hopper_webp.tif',
      'png_decompression_dos.png',
      'truncated_end_chunk.png',
      'truncated_jpeg.jpg',
      'unknown_compression_method.png',
    ],
  },
  // A comment between the largest value and the pixels, as netpbm reads it.
  gdk: { 'only shardtool': ['fail/invalid.2.ppm'] },
  goImage: { 'only shardtool': ['testdata/invalid-palette-ref.tiff'] },
  libpng: {
    // A wrong checksum of the pixels, and pixels that are shorter than their chunk states.
    'only Pillow': ['crashers/badcrc.png', 'crashers/huge_IDAT.png'],
    'only shardtool': ['crashers/empty_ancillary_chunks.png'],
  },
  libjpegTurbo: {},
  goStandardImage: {},
};

test.each(Object.keys(EXCEPTIONS))(
  'images of %s have the same pixels as with Pillow, except for the listed files',
  async (name) => {
    const files = corpus(name);
    if (files === null || python === null) return;
    const images = files.filter((file) => {
      const kind = imageKindOf(readFileSync(file).subarray(0, SIGNATURE_BYTES));
      // Decoders of AV1 round in different ways, and Pillow does not rotate its images.
      return kind === undefined ? /\.(bmp|dib|p[bgpn]m|jpe?g|png|gif|webp|tiff?)$/i.test(file) : kind !== 'avif';
    });
    expect(images.length).toBeGreaterThan(name === 'libjpegTurbo' ? 3 : 50);
    const referee = ofPillow(images);
    const codecs = await openCodecs({ maxPixels: MAX_PIXELS });
    const memory = new WebAssembly.Memory({ initial: 1200, maximum: 1200, shared: true });
    const scratch = new Scratch(memory, { offset: 0, bytes: 1200 * 65_536 });
    const different: Record<string, string[]> = {};
    for (const file of images) {
      const expected = referee[file]!;
      const found = await decoded(file);
      const isSame = found?.sha256 === expected?.sha256 && found?.width === expected?.width;
      if (isSame || (expected !== null && CLIPPED.test(expected.mode))) continue;
      const what = found === null ? 'only Pillow' : expected === null ? 'only shardtool' : 'other pixels';
      different[what] ??= [];
      different[what].push(file);
    }
    codecs.jpeg.close();
    const listed = EXCEPTIONS[name]!;
    for (const what of new Set([...Object.keys(different), ...Object.keys(listed)])) {
      const ending = (file: string) => (listed[what] ?? []).find((known) => file.endsWith(`/${known}`)) ?? file;
      expect((different[what] ?? []).map(ending).sort(), what).toEqual([...(listed[what] ?? [])].sort());
    }

    async function decoded(file: string): Promise<Pixels | null> {
      scratch.reset();
      try {
        const bytes = readFileSync(file);
        const { codec, header } = openImage(codecs, bytes, MAX_PIXELS);
        const { width, height } = header;
        const { offset, stride } = await codec.decodeRegion(bytes, { x: 0, y: 0, width, height }, 1, scratch);
        const sum = createHash('sha256');
        for (let y = 0; y < height; y++)
          sum.update(scratch.memory.subarray(offset + y * stride, offset + y * stride + 3 * width));
        return { width, height, sha256: sum.digest('hex') };
      } catch (error) {
        if (error instanceof SampleDecodeError) return null;
        throw error;
      }
    }
  },
);

type Entry = readonly [name: string, bytes: number, sha256: string];

/** Archives of which shardtool intentionally reads less than Python, or more. */
const TARS: Readonly<Record<string, string>> = {
  // A name in a global pax header belongs to no file.
  'pax-global-records.tar': 'other files',
  // The magic of GNU tar excludes a name prefix.
  'invalid-go17.tar': 'other files',
};

test.each(['goTar', 'python'])('tars of %s contain the same files as with Python, or are rejected', async (name) => {
  const tars = corpus(name)?.filter((file) => file.endsWith('.tar')) ?? [];
  if (tars.length === 0 || python === null) return;
  const referee = runPython<Record<string, Entry[] | null>>(
    `
import hashlib, json, sys, tarfile
found = {}
for path in json.load(sys.stdin):
    try:
        with tarfile.open(path, "r:", errorlevel=2, encoding="utf-8", errors="surrogateescape") as tar:
            files = [member for member in tar if member.isreg() and not member.issparse() and member.size < 1e8]
            found[path] = [[file.name, file.size, hashlib.sha256(tar.extractfile(file).read()).hexdigest()] for file in files]
    except Exception:
        found[path] = None
print(json.dumps(found))
`,
    tars,
    python,
  );
  let same = 0;
  for (const file of tars) {
    const found = await entriesOf(readFileSync(file), file);
    const known = TARS[path.basename(file)];
    if (found instanceof ShardtoolError) {
      // Entries that are not plain files, names that are not file names, and archives without an end are rejected intentionally.
      const isMeant = [DamagedShardError, EntryNameError, UnsupportedEntryError].some((kind) => found instanceof kind);
      expect(isMeant || found.name === 'TruncatedShardError', `${file}: ${found.message}`).toBe(true);
    } else if (known === undefined) {
      expect(found, file).toEqual(referee[file]);
      same++;
    } else expect(found, file).not.toEqual(referee[file]);
  }
  expect(same).toBeGreaterThanOrEqual(name === 'goTar' ? 14 : 0);
});

async function entriesOf(bytes: Buffer, location: string): Promise<Entry[] | ShardtoolError> {
  const read = (offset: number, target: Uint8Array) => bytes.copy(target, 0, offset, offset + target.length);
  const source = {
    ...{ location, size: bytes.length, readNow: read },
    readAt: async (offset: number, target: Uint8Array) => read(offset, target),
    close: async () => undefined,
  };
  const found: Entry[] = [];
  try {
    for await (const entries of scanEntries(source)) {
      for (const { name, offset, bytes: length, link } of entries) {
        if (link !== undefined) continue;
        found.push([
          name,
          length,
          createHash('sha256')
            .update(bytes.subarray(offset, offset + length))
            .digest('hex'),
        ]);
      }
    }
    return found;
  } catch (error) {
    if (error instanceof ShardtoolError) return error;
    throw error;
  }
}

test('objects of the msgpack test suite have the expected kind and length', () => {
  const [file] = corpus('msgpack')?.filter((found) => found.endsWith('dist/msgpack-test-suite.json')) ?? [];
  if (file === undefined) return;
  const KINDS: Readonly<Record<string, readonly string[]>> = {
    nil: ['nil'],
    bool: ['boolean'],
    binary: ['bin'],
    number: ['integer', 'float'],
    bignum: ['integer', 'float'],
    string: ['str'],
    array: ['array'],
    map: ['map'],
  };
  type Case = Readonly<Record<string, unknown>> & { readonly msgpack: readonly string[] };
  const groups = JSON.parse(readFileSync(file, 'utf8')) as Readonly<Record<string, readonly Case[]>>;
  let objects = 0;
  for (const one of Object.values(groups).flat()) {
    const kinds = Object.keys(KINDS).find((kind) => kind in one);
    for (const text of one.msgpack) {
      const bytes = Buffer.from(text.replaceAll('-', ''), 'hex');
      let [at, left] = [0, 1];
      for (; left > 0 && at < bytes.length; left--) {
        expect(at + headBytes(bytes[at]!)).toBeLessThanOrEqual(bytes.length);
        const head = decodeHead(bytes, at);
        // Extensions and timestamps are not read.
        if (head === null) {
          expect(kinds, text).toBeUndefined();
          break;
        }
        if (at === 0 && kinds !== undefined) expect(KINDS[kinds], text).toContain(head.kind);
        at += head.bytes + head.payload;
        left += head.children;
      }
      if (kinds !== undefined) expect([at, left], text).toEqual([bytes.length, 0]);
      objects++;
    }
  }
  expect(objects).toBeGreaterThan(100);
});
