import { createHash } from 'node:crypto';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { emptyFolder } from '../datasets.js';
import { pythonWith, runPython } from '../python.js';

interface Written {
  /** sha256 of the image of each sample, in order; its label and another number. */
  readonly images: readonly string[];
  readonly labels: readonly number[];
  readonly numbers: readonly number[];
}

/** Random bytes that begin like a JPEG, of lengths from 3 to 250,000. What a writer prints is no part of the answer. */
const SAMPLES = `
import hashlib, json, os, random, sys
out, seed = json.load(sys.stdin)
answer, sys.stdout = sys.stdout, sys.stderr
random.seed(seed)
samples = []
for i in range(700):
    image = b"\\xff\\xd8\\xff" + random.randbytes(int(10 ** random.uniform(0, 5.4)))
    samples.append((image, random.randrange(1000), random.uniform(-1e6, 1e6)))
json.dump({"images": [hashlib.sha256(s[0]).hexdigest() for s in samples],
    "labels": [s[1] for s in samples], "numbers": [s[2] for s in samples]}, answer)
answer.flush()
`;
const WRITERS = {
  mds: `${SAMPLES}
import numpy as np
from streaming import MDSWriter
with MDSWriter(out=out, columns={"image": "bytes", "label": "int", "number": "float64"}, size_limit=1 << 22) as writer:
    for image, label, number in samples:
        writer.write({"image": image, "label": label, "number": np.float64(number)})
`,
  tfrecord: `${SAMPLES}
import tensorflow as tf
os.makedirs(out)
for shard in range(3):
    with tf.io.TFRecordWriter(f"{out}/train-{shard:05}-of-00003") as writer:
        for image, label, number in samples[shard * 250:(shard + 1) * 250]:
            writer.write(tf.train.Example(features=tf.train.Features(feature={
                "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
                "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
                "number": tf.train.Feature(float_list=tf.train.FloatList(value=[number])),
            })).SerializeToString())
`,
  parquet: `${SAMPLES}
import datasets
from datasets.table import embed_table_storage
datasets.disable_progress_bars()
features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=[str(i) for i in range(1000)]),
    "number": datasets.Value("float64")})
os.makedirs(out)
for shard in range(3):
    part = samples[shard * 250:(shard + 1) * 250]
    rows = {"image": [{"bytes": s[0], "path": None} for s in part], "label": [s[1] for s in part], "number": [s[2] for s in part]}
    made = datasets.Dataset.from_dict(rows, features=features).with_format("arrow").map(embed_table_storage, batched=True)
    made.with_format(None).to_parquet(f"{out}/train-{shard:05}-of-00003.parquet", batch_size=100)
`,
} as const;
const MODULES = { mds: 'streaming', tfrecord: 'tensorflow', parquet: 'datasets' } as const;

for (const layout of ['mds', 'tfrecord', 'parquet'] as const) {
  test.skipIf(pythonWith(MODULES[layout]) === null)(
    `all bytes, labels and numbers that the live writer of ${layout} was given are read back`,
    { timeout: 300_000 },
    async () => {
      const folder = path.join(emptyFolder(), 'written');
      const seed = Number(process.env.SHARDTOOL_SEED ?? 2026);
      const written = runPython<Written>(WRITERS[layout], [folder, seed]);
      await using dataset = await openDataset(folder);
      const images: string[] = [];
      const labels: number[] = [];
      for await (const { cls, fields } of dataset.samples()) {
        images.push(createHash('sha256').update(fields.jpg!).digest('hex'));
        labels.push(cls);
      }
      const numbers: unknown[] = [];
      for (let shard = 0; shard < dataset.shards.length; shard++) {
        numbers.push(...(await dataset.files.index(shard)).columns.get('number')!);
      }
      expect({ images, labels }).toEqual({ images: written.images, labels: written.labels });
      expect(numbers).toEqual(layout === 'tfrecord' ? written.numbers.map(Math.fround) : written.numbers);
    },
  );
}
