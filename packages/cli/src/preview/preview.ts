/** Makes a picture of the first samples of an epoch: every image with its objects, its masks next to it and its class below. */
import path from 'node:path';
import { onCommandLine, totalOf, writeAtomically } from '@shardtool/base';
import { type Batch, type Dataset, type LoaderOptions, spelledBadSample, type TransformInput } from '@shardtool/reader';
import sharp, { type FormatEnum } from 'sharp';
import { Canvas } from './canvas.js';
import { LABEL_HEIGHT, Labels } from './labels.js';
import { drawObjects } from './objects.js';
import { imageTile, maskTile, sizeOf, valueRange } from './tiles.js';

export interface Grid {
  readonly columns: number;
  readonly rows: number;
}

export interface PreviewOptions {
  readonly transform: TransformInput;
  /** Options of the loader whose first samples are shown. */
  readonly loader: LoaderOptions;
  readonly grid: Grid;
  /** File to write: .png, .jpg, .jpeg or .webp. */
  readonly output: string;
}

/** Space between images, and around their labels, in pixels. */
const GAP = 6;
const BACKGROUND = 24;
const INK = 230;

/** Number and sizes of the images, and the reason why some are missing in the picture. */
export interface Shown {
  readonly images: number;
  /** The size of the images. With buckets, the sizes that have a row. */
  readonly sizes: readonly Size[];
  /** Number of samples that were skipped because they could not be decoded. */
  readonly bad: readonly { readonly key: string; readonly reason: string }[];
  /** Null if class names are drawn. Without a font: the classes of the images, in their order. */
  readonly classes: readonly string[] | null;
}

interface Size {
  readonly width: number;
  readonly height: number;
}

/** Images of one size. */
interface Strip {
  readonly size: Size;
  readonly cells: Cell[];
}

interface Cell {
  /** The image, and its masks. */
  readonly tiles: readonly Uint8Array[];
  readonly label: string;
}

/** Number of samples that are searched for a row of each size. Rarer sizes are not shown. */
const SAMPLES_SEEN = 4096;

/**
 * Writes the picture. With buckets, each size has a row. Bad samples are skipped. Throws OptionError for invalid options and
 * FileError if data cannot be read.
 */
export async function writePreview(dataset: Dataset, options: PreviewOptions): Promise<Shown> {
  const { transform, grid, output } = options;
  const { aspectBuckets: buckets } = options.loader;
  const [strips, most] = buckets === undefined ? [1, grid.columns * grid.rows] : [grid.rows, grid.columns];
  const loader = dataset.loader({
    ...options.loader,
    transform,
    batchSize: Math.min(most, dataset.size),
    prefetchBatches: 2,
    reuse: true,
    lastBatch: 'partial',
    onBad: 'skip',
  });
  const found = new Map<string, Strip>();
  try {
    const range = valueRange(transform);
    let seen = 0;
    for await (const batch of loader) {
      const size = sizeOf(batch);
      const name = `${size.width}x${size.height}`;
      if (!found.has(name)) {
        if (found.size === strips) continue;
        found.set(name, { size, cells: [] });
      }
      const { cells } = found.get(name)!;
      for (let row = 0; row < batch.size && cells.length < most; row++) {
        if (batch.valid[row] === 0) continue;
        const masks = Object.values(batch.masks).map((mask) => maskTile(rowOf(mask, row, size)));
        const image = imageTile(batch, row, range);
        drawObjects({ pixels: image, ...size }, batch, row);
        cells.push({ tiles: [image, ...masks], label: labelOf(batch, row, dataset.classes) });
      }
      seen += batch.size;
      const areFull = found.size === strips && [...found.values()].every((strip) => strip.cells.length >= most);
      if (areFull || (buckets !== undefined && seen >= SAMPLES_SEEN)) break;
    }
  } finally {
    await loader.close();
  }
  const labels = new Labels();
  const hasFonts = await labels.hasFonts();
  const shown = [...found.values()].filter(({ cells }) => cells.length > 0).sort((a, b) => ratioOf(a) - ratioOf(b));
  const drawn: Canvas[] = [];
  for (const { cells, size } of shown) drawn.push(await draw(cells, size, grid, hasFonts ? labels : null));
  if (drawn.length > 0) await write(stacked(drawn), output);
  const cells = shown.flatMap((strip) => strip.cells);
  const bad = loader.report().badSamples.map((sample) => {
    const { key, reason } = spelledBadSample(sample, onCommandLine);
    return { key, reason };
  });
  const classes = hasFonts ? null : cells.map(({ label }) => label);
  return { images: cells.length, sizes: shown.map(({ size }) => size), bad, classes };
}

function ratioOf({ size: { width, height } }: Strip): number {
  return width / height;
}

/** Joins pictures vertically. */
function stacked(pictures: readonly Canvas[]): Canvas {
  if (pictures.length === 1) return pictures[0]!;
  const height = totalOf(pictures, ({ height }) => height);
  const canvas = new Canvas(Math.max(...pictures.map(({ width }) => width)), height, BACKGROUND);
  let top = 0;
  for (const picture of pictures) {
    canvas.paste(picture.pixels, picture.width, 0, top);
    top += picture.height;
  }
  return canvas;
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

/** Encodes the picture in the format of the file's extension. */
async function write({ pixels, width, height }: Canvas, output: string): Promise<void> {
  const ending = path.extname(output).slice(1).toLowerCase() as keyof FormatEnum;
  await writeAtomically(
    output,
    await sharp(pixels, { raw: { width, height, channels: 3 } })
      .toFormat(ending)
      .toBuffer(),
  );
}
