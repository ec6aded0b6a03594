/** The bar chart of bench/peers/results.json: images per second of each loader, and from the slowest to the fastest round. */
import { picture, text } from './svg.mjs';

/** Labels of the loaders that do the same task. A loader without a label is not drawn. */
const SAME_TASK = {
  limit: 'JPEG decoder alone (upper bound)',
  shardtool: 'shardtool',
  'ffcv-jpg': 'FFCV, JPEGs',
  dali: 'NVIDIA DALI, CPU',
  'pytorch-decode-jpeg': 'PyTorch DataLoader, decode_jpeg',
  'pytorch-torchcodec': 'PyTorch DataLoader, torchcodec',
  'pytorch-pillow': 'PyTorch DataLoader, Pillow',
  'tf-antialias': 'tf.data, antialiased',
  mosaicml: 'MosaicML Streaming, Pillow',
  webdataset: 'webdataset, Pillow',
  litdata: 'LitData StreamingDataset',
  'litdata-raw': 'LitData StreamingRawDataset',
  'hf-datasets': 'datasets, DataLoader, Pillow',
  grain: 'Grain, Pillow',
  'ray-data': 'Ray Data, Pillow',
  spdl: 'SPDL',
};
/** Labels of the loaders below the divider: they do less, or read other data. */
const OTHER_TASK = {
  'ffcv-raw': 'FFCV, images decoded beforehand',
  'tf-plain': 'tf.data, without antialiasing',
  datago: 'datago, without random crops',
};

const WIDTH = 860;
const NAMES = 250;
const ROW = 26;
const TOP = 64;
const BARS = WIDTH - NAMES - 130;

/** Height of the divider between the tasks, with its heading. */
const DIVIDER = 34;

export function drawPeers({ machine, photos, rows: all }, theme) {
  const chosen = (labels) =>
    all
      .filter(({ id }) => id in labels)
      .map((row) => ({ ...row, label: labels[row.id] }))
      .sort((a, b) => b.imagesPerSecond - a.imagesPerSecond);
  const same = chosen(SAME_TASK);
  const other = chosen(OTHER_TASK);
  const rows = [...same, ...other];
  const most = Math.max(...rows.map(({ fastest }) => fastest));
  const x = (rate) => round(NAMES + (BARS * rate) / most);
  const divider = TOP + same.length * ROW;
  const bottom = divider + DIVIDER + other.length * ROW;
  return picture({
    width: WIDTH,
    height: bottom + 40,
    title: `Images per second: ${rows.map(({ label, imagesPerSecond }) => `${label} ${integer(imagesPerSecond)}`).join(', ')}`,
    body: [
      text(16, 24, 'Images per second, from JPEGs to shuffled batches of 224 x 224', {
        fill: theme.text,
        size: 16,
        weight: 600,
      }),
      text(16, 44, `${photos} · ${machine}`, { fill: theme.quiet, size: 12 }),
      ...same.flatMap((row, i) => bar(row, TOP + i * ROW, x, theme)),
      `<path d="M 16 ${divider + 6} H ${WIDTH - 16}" stroke="${theme.quiet}" fill="none"/>`,
      text(16, divider + 24, 'Another task: less work per image, or three times the bytes to store', {
        fill: theme.quiet,
        size: 12,
      }),
      ...other.flatMap((row, i) => bar(row, divider + DIVIDER + i * ROW, x, theme)),
      text(16, bottom + 22, 'Thin lines: slowest to fastest round.', { fill: theme.quiet, size: 12 }),
    ],
  });
}

function bar({ id, label, imagesPerSecond, slowest, fastest }, y, x, theme) {
  const ours = id.startsWith('shardtool');
  const fill = ours ? theme.ours : id === 'limit' ? theme.mark : theme.theirs;
  const middle = y + 11;
  return [
    text(NAMES - 10, y + 16, label, { fill: theme.text, anchor: 'end', weight: ours ? 600 : 400 }),
    `<rect x="${NAMES}" y="${y + 3}" width="${round(x(imagesPerSecond) - NAMES)}" height="${ROW - 10}" rx="2" fill="${fill}"/>`,
    `<path d="M ${x(slowest)} ${middle} H ${x(fastest)}" stroke="${theme.text}" stroke-width="1.5"/>`,
    text(x(Math.max(imagesPerSecond, fastest)) + 8, y + 16, integer(imagesPerSecond), {
      fill: theme.text,
      weight: ours ? 600 : 400,
    }),
  ];
}

function integer(value) {
  return Math.round(value).toLocaleString('en-US');
}

function round(value) {
  return Math.round(value * 10) / 10;
}
