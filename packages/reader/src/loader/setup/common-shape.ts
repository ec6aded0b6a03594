import { NpyError, OptionError, option, SampleChecksumError, sentence } from '@shardtool/base';
import { headerOf, imageFields, isNpy, readNpyHeader } from '@shardtool/format';
import type { Size } from '../../codec/codec.js';
import type { StoredDataset } from '../../dataset/stored-dataset.js';
import { planSample } from '../../transform/plan.js';
import type { CompiledTransform } from '../../transform/transform.js';

/** Any random number gives the same result: if no step sets a size, no step changes the size at random. */
const MIDDLE = { next: () => 0.5 };

/**
 * Returns the size of all images if the transform does not set one: that of the dataset's first image after the
 * transform. An image of another size is an error when it is read. Throws {@link OptionError} if the index does not
 * contain the size of the first image.
 */
export async function commonShape(
  dataset: StoredDataset,
  transform: CompiledTransform,
  options: { readonly applyExifOrientation: boolean; readonly image: string | undefined },
): Promise<Size> {
  if (dataset.mixture === null) return firstShape(dataset, transform, options);
  const [first, ...others] = await Promise.all(
    dataset.mixture.datasets.map(async (one) => ({
      name: one.name,
      size: await firstShape(one.dataset, transform, options),
    })),
  );
  const { name, size } = first!;
  const other = others.find((one) => one.size.width !== size.width || one.size.height !== size.height);
  if (other === undefined) return size;
  throw new OptionError(
    {},
    sentence`Images of ${name} come out as ${size.width}x${size.height} and those of ${other.name} as ${other.size.width}x${other.size.height}: add a step with a size (such as resize and centerCrop) to the transform, or set ${option('collate', 'list')}.`,
  );
}

async function firstShape(
  dataset: StoredDataset,
  transform: CompiledTransform,
  options: { readonly applyExifOrientation: boolean; readonly image: string | undefined },
): Promise<Size> {
  // The index has the size of each sample's first image.
  const first =
    (options.image === undefined ? await sizeInIndex(dataset) : null) ?? (await sizeInSample(dataset, options));
  if (first === null) {
    throw new OptionError(
      {},
      sentence`${dataset.location} has no image of known size: add a step with a size (such as resize and centerCrop) to the transform, or set ${option('collate', 'list')}.`,
    );
  }
  const isTurned = options.applyExifOrientation && first.orientation >= 5;
  const { width, height } = isTurned
    ? planSample(transform, first.height, first.width, MIDDLE)
    : planSample(transform, first.width, first.height, MIDDLE);
  return { width, height };
}

/** Size and orientation of an image as it is stored. */
type StoredSize = Size & { readonly orientation: number };

async function sizeInIndex(dataset: StoredDataset): Promise<StoredSize | null> {
  const shard = dataset.shards.findIndex(({ samples }) => samples > 0);
  const index = shard < 0 ? null : await dataset.files.index(shard);
  const row = index === null ? -1 : index.width.findIndex((width) => width > 0);
  if (index === null || row < 0) return null;
  return { width: index.width[row]!, height: index.height[row]!, orientation: index.orientation[row]! };
}

/** Number of samples in which a size is searched. If all of them are damaged, the whole dataset probably is. */
const MOST_LOOKED_AT = 32;

/**
 * Indexes have no sizes of arrays that are not uint8 with three channels, and of extra images. A damaged sample has no
 * size either: it is reported or skipped when its batch is made.
 */
async function sizeInSample(
  dataset: StoredDataset,
  { image }: { readonly image: string | undefined },
): Promise<StoredSize | null> {
  for (let index = 0; index < Math.min(dataset.size, MOST_LOOKED_AT); index += 1) {
    const size = await dataset.get(index).then(
      ({ fields }) => sizeOf(fields, image),
      (error) => {
        if (error instanceof SampleChecksumError) return null;
        throw error;
      },
    );
    if (size !== null) return size;
  }
  return null;
}

function sizeOf(fields: Readonly<Record<string, Uint8Array>>, image: string | undefined): StoredSize | null {
  const name = image ?? imageFields(Object.keys(fields))[0];
  const bytes = name === undefined ? undefined : fields[name];
  if (bytes === undefined) return null;
  if (!isNpy(bytes)) return headerOf(bytes);
  try {
    const [height = 0, width = 0] = readNpyHeader(bytes).shape;
    return width > 0 && height > 0 ? { width, height, orientation: 1 } : null;
  } catch (error) {
    if (error instanceof NpyError) return null;
    throw error;
  }
}
