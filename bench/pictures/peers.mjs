/** The bar chart of bench/peers/results.json: images a second of each loader, and from the slowest to the fastest round. */
import { picture, text } from './svg.mjs';

/** How each is called where there is little room. Whoever has no name here is not drawn. */
const NAMES_OF = {
  shardtool: 'shardtool',
  'shardtool-never': 'shardtool, no checksums',
  'shardtool-float32': 'shardtool, float32 normalised',
  'shardtool-crops': 'shardtool, crop index',
  'shardtool-python': 'shardtool from Python',
  limit: 'region decode alone',
  'pytorch-pillow': 'PyTorch DataLoader, Pillow',
  'pytorch-decode-jpeg': 'PyTorch DataLoader, decode_jpeg',
  webdataset: 'webdataset, Pillow',
  mosaicml: 'MosaicML Streaming, Pillow',
  dali: 'NVIDIA DALI, CPU',
  'ffcv-jpg': 'FFCV, jpg',
  'ffcv-raw': 'FFCV, raw (another task)',
  'tf-antialias': 'tf.data, antialiased',
  'tf-plain': 'tf.data, without antialiasing',
};

const WIDTH = 860;
const NAMES = 250;
const ROW = 26;
const TOP = 64;
const BARS = WIDTH - NAMES - 130;

export function drawPeers({ machine, photos, rows: all }, theme) {
  const rows = all.filter(({ id }) => id in NAMES_OF).map((row) => ({ ...row, label: NAMES_OF[row.id] }));
  const most = Math.max(...rows.map(({ fastest }) => fastest));
  const x = (rate) => round(NAMES + (BARS * rate) / most);
  const limit = rows.find(({ id }) => id === 'limit');
  const bottom = TOP + rows.length * ROW;
  return picture({
    width: WIDTH,
    height: bottom + 56,
    title: `Images a second: ${rows.map(({ label, imagesPerSecond }) => `${label} ${integer(imagesPerSecond)}`).join(', ')}`,
    body: [
      text(16, 24, 'Images a second, from JPEG to shuffled batches of 224 x 224', {
        fill: theme.text,
        size: 16,
        weight: 600,
      }),
      text(16, 44, `${photos} · ${machine}`, { fill: theme.quiet, size: 12 }),
      ...rows.flatMap((row, i) => bar(row, TOP + i * ROW, x, theme)),
      ...(limit === undefined
        ? []
        : [
            `<path d="M ${x(limit.imagesPerSecond)} ${TOP - 4} V ${bottom}" stroke="${theme.mark}" stroke-dasharray="3 3" fill="none"/>`,
          ]),
      text(16, bottom + 22, 'Thin lines: slowest to fastest round. Dashed: decoding alone, with nothing around it.', {
        fill: theme.quiet,
        size: 12,
      }),
      text(
        16,
        bottom + 40,
        'Another task: FFCV, raw reads images that were decoded and made smaller beforehand, three times the bytes.',
        {
          fill: theme.quiet,
          size: 12,
        },
      ),
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
