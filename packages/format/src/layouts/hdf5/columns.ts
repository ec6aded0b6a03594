import { option, type Sentence, sentence, UnsupportedShardError } from '@shardtool/base';
import { CLASS_NAMES, IMAGE_NAMES } from '../columns/column-names.js';
import type { ChosenColumns } from '../layout.js';
import type { HdfDataset } from './file.js';

/** The roles of a file's datasets. */
export interface HdfColumns {
  readonly image: HdfDataset;
  readonly cls: HdfDataset | null;
  readonly key: HdfDataset | null;
  /** Label columns by name: further values of each image. */
  readonly labels: ReadonlyMap<string, HdfDataset>;
}

/** Names of images that arrays have in addition to the usual ones, the most certain first. */
const ARRAY_NAMES = [...IMAGE_NAMES, 'x', 'data', 'imgs', 'photos'];
/** Longer rows are not labels. */
const MOST_NUMBERS = 1024;

/**
 * Chooses datasets by name and shape. Images are arrays of bytes [n, height, width, 3] (or 1 channel, or no channel
 * axis for grey), or values of variable length. Other datasets with n rows in the same group belong to them, or those
 * in the root if the group has none. Throws {@link UnsupportedShardError} if no dataset is such an array, or if several
 * are.
 */
export function chooseColumns(shard: string, datasets: readonly HdfDataset[], chosen: ChosenColumns): HdfColumns {
  const named = (role: string, given: string): HdfDataset => {
    const path = given.replace(/^\/+/, '');
    const found = datasets.find((dataset) => dataset.path === path);
    if (found !== undefined) return found;
    throw unsupported(shard, `it has no dataset "${path}" for the ${role}; it has ${listed(datasets)}`);
  };
  const image = chosen.image === undefined ? imageAmong(shard, datasets) : named('image', chosen.image);
  if (!isImages(image)) {
    const what = `its dataset "${image.path}" has the shape [${image.shape.join(', ')}]${image.kind === 'byte' ? '' : ' and does not hold bytes (uint8)'}`;
    throw unsupported(shard, `${what}; images are uint8 [n, height, width, 3], or bytes of variable length`);
  }
  const rows = image.shape[0]!;
  const isColumn = (dataset: HdfDataset): boolean => dataset !== image && rowLength(dataset, rows) !== null;
  const near = datasets.filter((dataset) => isColumn(dataset) && groupOf(dataset) === groupOf(image));
  const columns = near.length > 0 ? near : datasets.filter((dataset) => isColumn(dataset) && groupOf(dataset) === '');
  const key = chosen.key === undefined ? null : named('key', chosen.key);
  if (key !== null && (key.kind !== 'text' || key.shape[0] !== rows))
    throw unsupported(
      shard,
      `its dataset "${key.path}" does not hold one text for each of ${rows} images, so it cannot be the keys`,
    );
  const cls = chosen.label === undefined ? usual(columns.filter(isClass), CLASS_NAMES) : named('class', chosen.label);
  if (cls !== null && (!isClass(cls) || rowLength(cls, rows) !== 1))
    throw unsupported(shard, `its dataset "${cls.path}" does not hold one integer for each of ${rows} images`);
  const labels = columns.filter((dataset) => dataset !== cls && dataset !== key);
  return { image, cls, key, labels: new Map(labels.map((dataset) => [nameOf(dataset), dataset])) };
}

/** How many values each row has; null if this is not a column of that many rows. */
export function rowLength({ kind, shape }: HdfDataset, rows: number): number | null {
  if (kind === 'other' || kind === 'bytes' || shape[0] !== rows) return null;
  const length = shape.slice(1).reduce((product, side) => product * side, 1);
  return length >= 1 && length <= (kind === 'text' ? 1 : MOST_NUMBERS) ? length : null;
}

function imageAmong(shard: string, datasets: readonly HdfDataset[]): HdfDataset {
  const images = datasets.filter(isImages);
  if (images.length === 0) {
    throw unsupported(
      shard,
      `none of its datasets holds images (uint8 [n, height, width, 3], or bytes of variable length); it has ${listed(datasets)}`,
    );
  }
  const taken = images.length === 1 ? images[0]! : usual(images, ARRAY_NAMES);
  // The file must not silently lose another dataset with as many rows, such as masks.
  const other = images.find(
    (one) => one !== taken && (taken === null || one.shape[0] === taken.shape[0] || nameOf(one) === nameOf(taken)),
  );
  if (taken !== null && other === undefined) return taken;
  throw unsupported(
    shard,
    sentence`several of its datasets hold images (${listed(images)}), but only one can be read: choose it by its path, with ${option('features.image')}`,
  );
}

function isImages({ kind, shape }: HdfDataset): boolean {
  // In a file without images the first side is 0.
  if (shape.length === 0 || shape.slice(1).some((side) => side < 1)) return false;
  if (kind === 'bytes') return shape.length === 1;
  const [, , width, channels] = shape;
  // A single image has 3 or 4 as its last side.
  if (shape.length === 3) return kind === 'byte' && width! > 4;
  return kind === 'byte' && shape.length === 4 && (channels === 3 || channels === 1);
}

function isClass({ kind, shape }: HdfDataset): boolean {
  return (kind === 'byte' || kind === 'integer') && shape.slice(1).every((side) => side === 1);
}

function usual(datasets: readonly HdfDataset[], names: readonly string[]): HdfDataset | null {
  for (const name of names) {
    const found = datasets.find((dataset) => nameOf(dataset) === name);
    if (found !== undefined) return found;
  }
  return null;
}

function nameOf({ path }: HdfDataset): string {
  return path.slice(path.lastIndexOf('/') + 1).toLowerCase();
}

function groupOf({ path }: HdfDataset): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

function listed(datasets: readonly HdfDataset[]): string {
  const some = datasets.slice(0, 8).map(({ path, shape }) => `"${path}" [${shape.join(', ')}]`);
  if (some.length === 0) return 'none';
  return `${some.join(', ')}${datasets.length > some.length ? ` and ${datasets.length - some.length} more` : ''}`;
}

function unsupported(shard: string, what: string | Sentence): UnsupportedShardError {
  return new UnsupportedShardError({ shard }, sentence`${shard}: ${what}.`);
}
