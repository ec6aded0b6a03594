/**
 * Makes the pictures of transform steps in docs/pictures/steps: four results of each step, as `shardtool preview` draws them. Then
 * scripts/step-docs.mjs puts them into docs/transforms.md. The photo is from examples/photos, whose README names its author and licence.
 *
 *     npm run build && node scripts/step-pictures.mjs && node scripts/step-docs.mjs
 */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { STEPS } from '#reader/transform/step-table';
import { writePreview } from '../packages/cli/dist/preview/preview.js';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const folder = path.join(root, 'docs/pictures/steps');
const PHOTO = path.join(root, 'examples/photos/coffee/coffee_001.jpg');
const SIZE = [84, 112];
const SMALL = { name: 'resize', size: SIZE };
/** Results of several sizes, in the middle of a gray picture. */
const FRAME = { name: 'centerCropOrPad', size: SIZE, fill: 60 };

/** Steps without a picture: they change no pixel, or need boxes. */
const NONE = ['randomIoUCrop', 'sanitizeBoundingBoxes', 'toDtype', 'normalize', 'layout'];
/** The parameters of a picture. The defaults may be too weak to see. */
const PARAMETERS = {
  resize: { size: [60, 112] },
  randomResize: { minSize: 30, maxSize: 84 },
  randomShortestSize: { minSize: [30, 50, 70] },
  resizeKeepRatio: { size: SIZE, longest: 1, randomAspectProb: 1, randomAspectRange: [0.6, 1.6] },
  scaleJitter: { targetSize: [112, 84], scaleRange: [0.4, 1] },
  letterbox: { size: [84, 84] },
  cover: { size: [84, 60], crop: 'random' },
  pad: { padding: 12, paddingMode: 'reflect' },
  randomZoomOut: { p: 1, sideRange: [1, 2.5], fill: 60 },
  centerCrop: { size: [60, 60] },
  centerCropOrPad: { size: [100, 60], fill: 60 },
  cornerCrop: { size: [50, 70], corner: 'bottomRight' },
  randomCrop: { size: [50, 70] },
  randomResizedCrop: { size: SIZE },
  randomRotation: { degrees: 40, interpolation: 'bilinear' },
  randomRotate90: { p: 1 },
  randomAffine: { degrees: 20, translate: [0.1, 0.1], scale: [0.7, 1.2], shear: 15, interpolation: 'bilinear' },
  randomPerspective: { p: 1 },
  elasticTransform: { alpha: 120, sigma: 5 },
  gaussianBlur: { kernelSize: 9, sigma: [0.5, 4] },
  colorJitter: { brightness: 0.5, contrast: 0.5, saturation: 0.6, hue: 0.3 },
  randomGrayscale: { p: 0.5 },
  hsvJitter: { hgain: 0.2 },
  gaussianNoise: { sigma: 0.15 },
  jpeg: { quality: [1, 30] },
  randomPosterize: { bits: 2 },
  randomSolarize: { threshold: 128 },
  randomAdjustSharpness: { sharpnessFactor: 6 },
  autoAugment: { interpolation: 'bilinear' },
  timmAugment: { config: 'rand-m9-mstd0.5-inc1' },
  randomApply: { transforms: [{ name: 'grayscale' }] },
  randomChoice: { transforms: [{ name: 'grayscale' }, { name: 'randomInvert', p: 1 }, []] },
  randomOrder: {
    transforms: [
      { name: 'randomPosterize', bits: 2, p: 1 },
      { name: 'gaussianBlur', kernelSize: 15, sigma: 4 },
    ],
  },
  randomErasing: { p: 1, value: 60 },
};

const work = mkdtempSync(path.join(os.tmpdir(), 'step-pictures-'));
const photos = path.join(work, 'photos', 'coffee');
mkdirSync(photos, { recursive: true });
for (const number of [1, 2, 3, 4]) copyFileSync(PHOTO, path.join(photos, `${number}.jpg`));
await pack(path.dirname(photos), path.join(work, 'shards'), { shuffle: false });
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const dataset = await openDataset(path.join(work, 'shards'));
for (const [name, { parameters }] of Object.entries(STEPS)) {
  if (NONE.includes(name)) continue;
  const step = { name, ...('p' in parameters && parameters.p.default === 0.5 ? { p: 1 } : {}), ...PARAMETERS[name] };
  if (name === 'randomHorizontalFlip' || name === 'randomVerticalFlip' || name === 'randomApply') step.p = 0.5;
  const output = path.join(folder, `${name}.webp`);
  const loader = { seed: 5, shuffle: false, workers: 1 };
  await writePreview(dataset, { transform: [SMALL, step, FRAME], loader, grid: { columns: 4, rows: 1 }, output });
}
await dataset.close();
rmSync(work, { recursive: true });
