/** A picture of the first samples of an epoch: every image with its masks beside it and its class below. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Batch, Dataset, LoaderOptions, TransformInput } from '@shardtool/reader';
import sharp, { type FormatEnum } from 'sharp';
import { Canvas } from './canvas.js';
import { LABEL_HEIGHT, Labels } from './labels.js';
import { imageTile, maskTile, sizeOf, valueRange } from './tiles.js';

export interface Grid {
  readonly columns: number;
  readonly rows: number;
}

export interface PreviewOptions {
  readonly transform: TransformInput;
  /** Of the loader whose first samples are shown. */
  readonly loader: LoaderOptions;
  readonly grid: Grid;
  /** File to write: .png, .jpg, .jpeg or .webp. */
  readonly output: string;
}

/** Between images, and around their labels. */
const GAP = 6;
const BACKGROUND = 24;
const INK = 230;

/** How many images are shown, of which size each is, and what could not be. */
export interface Shown {
  readonly images: number;
  readonly width: number;
  readonly height: number;
  /** Samples on the way that could not be decoded. */
  readonly bad: readonly { readonly key: string; readonly reason: string }[];
  /** Null where they are drawn; without a font the classes of the images, in their order. */
  readonly classes: readonly string[] | null;
}

interface Cell {
  /** The image, and its masks. */
  readonly tiles: readonly Uint8Array[];
  readonly label: string;
}

/** Writes the picture; bad samples are gone past. Throws what the loader throws. */
export async function writePreview(dataset: Dataset, options: PreviewOptions): Promise<Shown> {
  const { transform, grid, output } = options;
  const most = Math.min(grid.columns * grid.rows, dataset.size);
  const loader = dataset.loader({
    ...options.loader,
    transform,
    batchSize: most,
    prefetchBatches: 2,
    lastBatch: 'partial',
    onBadSample: 'skip',
  });
  const cells: Cell[] = [];
  let size = { width: 0, height: 0 };
  try {
    const range = valueRange(transform);
    for await (const batch of loader) {
      size = sizeOf(batch);
      for (let row = 0; row < batch.size && cells.length < most; row++) {
        if (batch.valid[row] === 0) continue;
        const masks = Object.values(batch.masks).map((mask) => maskTile(rowOf(mask, row, size)));
        cells.push({ tiles: [imageTile(batch, row, range), ...masks], label: labelOf(batch, row, dataset.classes) });
      }
      if (cells.length >= most) break;
    }
  } finally {
    await loader.close();
  }
  const labels = new Labels();
  const hasFonts = await labels.hasFonts();
  if (cells.length > 0) await write(await draw(cells, size, grid, hasFonts ? labels : null), output);
  const bad = loader.report().badSamples.map(({ key, reason }) => ({ key, reason }));
  return { images: cells.length, ...size, bad, classes: hasFonts ? null : cells.map(({ label }) => label) };
}

function rowOf(mask: Uint8Array, row: number, { width, height }: { width: number; height: number }): Uint8Array {
  return mask.subarray(row * width * height, (row + 1) * width * height);
}

function labelOf({ labels }: Batch, row: number, classes: readonly string[]): string {
  const label = labels[row]!;
  return label < 0 ? '-' : (classes[label] ?? String(label));
}

async function draw(
  cells: readonly Cell[],
  { width, height }: { width: number; height: number },
  { columns }: Grid,
  labels: Labels | null,
): Promise<Canvas> {
  const across = Math.min(columns, cells.length);
  const down = Math.ceil(cells.length / across);
  const cellWidth = width * cells[0]!.tiles.length;
  const pitchY = height + LABEL_HEIGHT + 2 * GAP;
  const canvas = new Canvas(GAP + across * (cellWidth + GAP), GAP + down * pitchY, BACKGROUND);
  for (const [i, { tiles, label }] of cells.entries()) {
    const left = GAP + (i % across) * (cellWidth + GAP);
    const top = GAP + Math.floor(i / across) * pitchY;
    tiles.forEach((tile, at) => {
      canvas.paste(tile, width, left + at * width, top);
    });
    if (labels === null) continue;
    const { ink, width: inkWidth } = await labels.draw(label, cellWidth);
    canvas.write(ink, inkWidth, left, top + height + GAP / 2, INK);
  }
  return canvas;
}

/** In the format that the ending of the name says. */
async function write({ pixels, width, height }: Canvas, output: string): Promise<void> {
  const ending = path.extname(output).slice(1).toLowerCase() as keyof FormatEnum;
  await writeFile(
    output,
    await sharp(pixels, { raw: { width, height, channels: 3 } })
      .toFormat(ending)
      .toBuffer(),
  );
}
