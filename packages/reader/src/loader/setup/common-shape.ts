import { OptionError } from '@shardtool/base';
import type { Size } from '../../codec/codec.js';
import type { StoredDataset } from '../../dataset/stored-dataset.js';
import { planSample } from '../../transform/plan.js';
import type { CompiledTransform } from '../../transform/transform.js';

/** The draw does not matter: without a step that names its size, no step changes the size at random. */
const MIDDLE = { next: () => 0.5 };

/**
 * Returns the size of all images if the transform does not set one: that of the dataset's first image after the
 * transform. An image of another size is an error when it is read. Throws {@link OptionError} if the index does not
 * contain the size of the first image.
 */
export async function commonShape(
  dataset: StoredDataset,
  transform: CompiledTransform,
  options: { readonly applyExifOrientation: boolean },
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
    `Images of ${name} come out as ${size.width}x${size.height} and those of ${other.name} as ` +
      `${other.size.width}x${other.size.height}: add a step with a size (resize and centerCrop, say) to the transform, or ` +
      "set collate to 'list'.",
  );
}

async function firstShape(
  dataset: StoredDataset,
  transform: CompiledTransform,
  options: { readonly applyExifOrientation: boolean },
): Promise<Size> {
  const shard = dataset.shards.findIndex(({ samples }) => samples > 0);
  const index = shard < 0 ? null : await dataset.files.index(shard);
  const row = index === null ? -1 : index.width.findIndex((width) => width > 0);
  if (index === null || row < 0) {
    throw new OptionError(
      {},
      `${dataset.location} has no image of known size: add a step with a size (resize and centerCrop, say) to the ` +
        "transform, or set collate to 'list'.",
    );
  }
  const isTurned = options.applyExifOrientation && index.orientation[row]! >= 5;
  const [width, height] = [index.width[row]!, index.height[row]!];
  const { width: planned, height: plannedHeight } = isTurned
    ? planSample(transform, height, width, MIDDLE)
    : planSample(transform, width, height, MIDDLE);
  return { width: planned, height: plannedHeight };
}
