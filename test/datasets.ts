import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { type PackOptions, pack } from '@shardtool/writer';
import { inject } from 'vitest';

const folders: string[] = [];

/** The {@link emptyFolder}s of a test file. */
export function removeFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** An empty folder that is removed after the tests of the file. */
export function emptyFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'shardtool-'));
  folders.push(folder);
  return folder;
}

/** The 60 example photos in shards, by default of ten samples each. */
export function packedPhotos(options: PackOptions = {}): Promise<string> {
  return ownCopy(['photos', options], (output) =>
    pack('examples/photos', output, { maxShardSamples: 10, workers: 1, ...options }),
  );
}

/**
 * A copy of the files that `make` writes to the folder that it is given. The first test file of a run that needs `description`
 * creates them, and the others copy. `description` must contain everything that determines the files.
 */
async function ownCopy(description: unknown, make: (folder: string) => Promise<unknown>): Promise<string> {
  const name = createHash('sha256').update(JSON.stringify(description)).digest('hex');
  const made = path.join(inject('shared'), name);
  if (!existsSync(made)) {
    const own = path.join(emptyFolder(), 'made');
    await make(own);
    // Another file may have been faster; the bytes are the same.
    if (!existsSync(made)) moveTo(own, made);
  }
  const copy = path.join(emptyFolder(), 'shards');
  cpSync(made, copy, { recursive: true, preserveTimestamps: true });
  return copy;
}

function moveTo(folder: string, target: string): void {
  try {
    renameSync(folder, target);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error;
  }
}

export interface SmallImages {
  readonly samples: number;
  /** Number of folders `a`, `b`, ... to which the images are assigned in turn. Default: 1. */
  readonly classes?: number;
  /** Length of each file in bytes: any bytes may follow the end of a JPEG. Default: about 1,000. */
  readonly bytes?: (sample: number) => number;
}

/** A folder of the example photos, 32 pixels high or wide, repeated: `a/0000.jpg`, `b/0001.jpg`, ... No two files are equal. */
export async function smallImages({ samples, classes = 1, bytes }: SmallImages): Promise<string> {
  const folder = path.join(emptyFolder(), 'images');
  const photos = await smallPhotos();
  for (let c = 0; c < classes; c++) mkdirSync(path.join(folder, className(c)), { recursive: true });
  for (let i = 0; i < samples; i++) {
    const photo = photos[i % photos.length]!;
    const file = Buffer.alloc(Math.max(photo.length + 4, bytes?.(i) ?? 0));
    photo.copy(file);
    file.writeUInt32LE(i, photo.length);
    writeFileSync(path.join(folder, className(i % classes), `${String(i).padStart(4, '0')}.jpg`), file);
  }
  return folder;
}

/** {@link smallImages} in shards. */
export async function packedSmall(images: SmallImages, options: PackOptions = {}): Promise<string> {
  const make = async (output: string) => pack(await smallImages(images), output, { workers: 1, ...options });
  // The results of a function cannot be seen from its text.
  if (images.bytes === undefined) return ownCopy(['small', images, options], make);
  const output = path.join(emptyFolder(), 'shards');
  await make(output);
  return output;
}

let photosAtHand: Promise<Buffer[]> | undefined;

/** Created once for all tests of a process: it takes longer than most packs of the images. */
function smallPhotos(): Promise<Buffer[]> {
  photosAtHand ??= makeSmallPhotos();
  return photosAtHand;
}

async function makeSmallPhotos(): Promise<Buffer[]> {
  await using dataset = await openDataset(await packedPhotos({ resize: 32 }));
  const photos: Buffer[] = [];
  for await (const { fields } of dataset.samples()) photos.push(Buffer.from(fields.jpg!));
  return photos;
}

function className(c: number): string {
  return String.fromCharCode('a'.charCodeAt(0) + c);
}
