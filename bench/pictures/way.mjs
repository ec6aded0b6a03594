/** The path of the data, from a folder of images to a batch. */
import { picture, text } from './svg.mjs';

const BOX = { width: 196, height: 92, gap: 34 };
const LEFT = 16;
const ROWS = [
  {
    name: 'Once: pack',
    boxes: [
      ['Images', 'millions of small files:', 'a folder, a network mount,', 'a bucket'],
      ['Plan', 'list, measure, shuffle;', 'the same input gives', 'the same shards'],
      ['Write', 'many files in flight,', 'headers checked, a crc32', 'for every field'],
      ['Shards', 'tar, LMDB or msgpack,', 'an index beside each,', 'on a disk or in a bucket'],
    ],
  },
  {
    name: 'Each epoch: load',
    boxes: [
      ['Order', 'whole shards and a buffer', 'shuffled: exact for all', 'ranks, resumed anywhere'],
      ['Read', 'blocks ahead by the plan,', 'with a cache that knows', 'what comes next'],
      ['Work', 'threads decode the region', 'of the crop, resize, flip,', 'normalize'],
      ['Batch', 'one slot of shared memory:', 'typed array, torch tensor,', 'pinned for the GPU'],
    ],
  },
];
const WIDTH = LEFT * 2 + 4 * BOX.width + 3 * BOX.gap;
const STEP = 148;

export function drawWay(theme) {
  return picture({
    width: WIDTH,
    height: 16 + ROWS.length * STEP,
    title: ROWS.map(({ name, boxes }) => `${name}: ${boxes.map(([head]) => head).join(', ')}`).join('. '),
    body: [
      `<defs><marker id="to" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="${theme.quiet}"/></marker></defs>`,
      ...ROWS.flatMap((row, i) => drawRow(row, 16 + i * STEP, theme)),
      turn(theme),
    ],
  });
}

function drawRow({ name, boxes }, y, theme) {
  const top = y + 20;
  return [
    text(LEFT, y + 8, name, { fill: theme.quiet, weight: 600 }),
    ...boxes.flatMap(([head, ...lines], i) => {
      const x = LEFT + i * (BOX.width + BOX.gap);
      return [
        `<rect x="${x}" y="${top}" width="${BOX.width}" height="${BOX.height}" rx="6" fill="${theme.box}" stroke="${theme.line}"/>`,
        text(x + 12, top + 24, head, { fill: theme.ours, size: 15, weight: 600 }),
        ...lines.map((line, k) => text(x + 12, top + 44 + k * 17, line, { fill: theme.text, size: 12.5 })),
        ...(i === 0 ? [] : [arrow(`M ${x - BOX.gap + 4} ${top + BOX.height / 2} H ${x - 4}`, theme)]),
      ];
    }),
  ];
}

/** The arrow from the shards, at the end of the first row, to the start of the second. */
function turn(theme) {
  const from = LEFT + 3 * (BOX.width + BOX.gap) + BOX.width / 2;
  const bottom = 36 + BOX.height;
  return arrow(`M ${from} ${bottom + 4} v 14 H ${LEFT + BOX.width / 2 + 60} v ${STEP - BOX.height - 22}`, theme);
}

function arrow(path, theme) {
  return `<path d="${path}" fill="none" stroke="${theme.quiet}" stroke-width="1.5" marker-end="url(#to)"/>`;
}
