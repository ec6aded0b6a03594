/**
 * shardtool, through its public interface. `--variant`: `always` or `never` (the option `checksum`), `crops` (shards with crop
 * indexes), `float32` (normalised, NCHW), `npy` (no JPEG is decoded).
 */
import { createRequire } from 'node:module';
import { openDataset } from '@shardtool/reader';
import { measure, parseArguments } from './measure.mjs';

const { version } = createRequire(import.meta.url)('../../packages/reader/package.json');

const NORMALISED = [
  { name: 'randomResizedCrop', size: 224 },
  { name: 'randomHorizontalFlip' },
  { name: 'toDtype', dtype: 'float32', scale: true },
  { name: 'normalize', mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] },
];

const VARIANTS = {
  always: { name: 'shardtool', checksum: 'always', transform: 'train224' },
  never: { name: 'shardtool, no checksums', checksum: 'never', transform: 'train224' },
  crops: { name: 'shardtool, crop index', checksum: 'always', transform: 'train224' },
  npy: {
    name: 'shardtool, npy',
    checksum: 'never',
    transform: 'train224',
    notes: 'no JPEG is decoded: pixels stored beforehand',
  },
  float32: { name: 'shardtool, float32 normalised', checksum: 'always', transform: NORMALISED },
};

const given = parseArguments();
const { name, checksum, transform, notes = `checksum: '${checksum}'` } = VARIANTS[given.variant];

async function build({ shards, batch, workers }) {
  const dataset = await openDataset(shards);
  const loader = dataset.loader({ batchSize: batch, transform, workers, checksum, lastBatch: 'drop', reuse: true });
  return {
    startEpoch: () => loader,
    async close() {
      await loader.close();
      await dataset.close();
    },
  };
}

await measure({
  name,
  version: `@shardtool/reader ${version}`,
  build,
  given,
  notes: () => notes,
});
