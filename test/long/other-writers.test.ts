/** Tests with installed software of other projects: each side reads the files that the other side writes. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { convert, Writer } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { emptyFolder } from '../datasets.js';
import { refereeWith, runPython } from '../python.js';

interface Written {
  /** sha256 of the image of each sample, in order; its label and another number. */
  readonly images: readonly string[];
  readonly labels: readonly number[];
  readonly numbers: readonly number[];
}

/** Random bytes that start like a JPEG, of lengths from 3 to 250,000. The output of a writer is not part of the result. */
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
  hdf5: `${SAMPLES}
import h5py, numpy as np
os.makedirs(out)
for split, part in [("a", samples[:400]), ("b", samples[400:])]:
    with h5py.File(f"{out}/{split}.h5", "w") as file:
        images = file.create_dataset("image", (len(part),), dtype=h5py.vlen_dtype(np.uint8))
        for i, sample in enumerate(part):
            images[i] = np.frombuffer(sample[0], np.uint8)
        file["label"] = np.array([s[1] for s in part])
        file["number"] = np.array([s[2] for s in part])
`,
  litdata: `${SAMPLES}
from litdata.streaming.writer import BinaryWriter
from litdata.types import Jpeg
writer = BinaryWriter(out, chunk_bytes=1 << 22)
for i, (image, label, number) in enumerate(samples):
    writer[i] = {"image": Jpeg(bytes=image), "label": label, "number": number}
writer.done()
writer.merge()
`,
} as const;
const PYTHONS = {
  mds: refereeWith('streaming'),
  tfrecord: refereeWith('tensorflow'),
  parquet: refereeWith('datasets'),
  hdf5: refereeWith('h5py'),
  litdata: refereeWith('litdata'),
};

for (const layout of ['mds', 'tfrecord', 'parquet', 'hdf5', 'litdata'] as const) {
  test.skipIf(PYTHONS[layout] === null)(
    `all bytes, labels and numbers that the installed writer of ${layout} was given are read back`,
    { timeout: 300_000 },
    async () => {
      const folder = path.join(emptyFolder(), 'written');
      const seed = Number(process.env.SHARDTOOL_SEED ?? 2026);
      const written = runPython<Written>(WRITERS[layout], [folder, seed], PYTHONS[layout]!);
      await using dataset = await openDataset(folder);
      const images: string[] = [];
      const labels: number[] = [];
      for await (const { label: cls, fields } of dataset.samples()) {
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

/** The data that the installed software reads from shards in its layout: sha256 of the images in order, labels, and a number. */
const READERS = {
  mds: `
import hashlib, json, sys
place = json.load(sys.stdin)
answer, sys.stdout = sys.stdout, sys.stderr
from streaming import StreamingDataset
found = []
for sample in StreamingDataset(local=place, batch_size=1, shuffle=False):
    found.append([sample["__key__"], hashlib.sha256(sample["image"]).hexdigest(), sample["label"], sample["number"], sample["txt"]])
json.dump(sorted(found), answer)
answer.flush()
`,
  tfrecord: `
import hashlib, json, sys
place = json.load(sys.stdin)
answer, sys.stdout = sys.stdout, sys.stderr
import tensorflow as tf
text = tf.io.FixedLenFeature([], tf.string)
wanted = {"__key__": text, "image/encoded": text, "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    "number": tf.io.FixedLenFeature([], tf.float32), "txt": text}
found = []
for record in tf.data.TFRecordDataset(sorted(tf.io.gfile.glob(place + "/*.tfrecord"))):
    sample = tf.io.parse_single_example(record, wanted)
    assert tf.io.decode_jpeg(sample["image/encoded"]).shape == (1, 1, 3) or not found
    found.append([sample["__key__"].numpy().decode(), hashlib.sha256(sample["image/encoded"].numpy()).hexdigest(),
        int(sample["image/class/label"]), float(sample["number"]), sample["txt"].numpy().decode()])
json.dump(sorted(found), answer)
answer.flush()
`,
  parquet: `
import hashlib, json, sys
place = json.load(sys.stdin)
answer, sys.stdout = sys.stdout, sys.stderr
import datasets
datasets.disable_progress_bars()
loaded = datasets.load_dataset(place, split="train", cache_dir=place + "-cache")
assert isinstance(loaded.features["image"], datasets.Image), loaded.features
assert loaded.features["label"].names == ["a", "b"], loaded.features
assert loaded[0]["image"].size == (1, 1)
found = []
for sample in loaded.cast_column("image", datasets.Image(decode=False)):
    found.append([sample["__key__"], hashlib.sha256(sample["image"]["bytes"]).hexdigest(), sample["label"], sample["number"], sample["txt"]])
json.dump(sorted(found), answer)
answer.flush()
`,
} as const;

for (const layout of ['mds', 'tfrecord', 'parquet'] as const) {
  test.skipIf(PYTHONS[layout] === null)(
    `the installed software for ${layout} reads back all keys, bytes, labels, numbers and texts that shardtool writes`,
    { timeout: 300_000 },
    async () => {
      const [source, place] = [path.join(emptyFolder(), 'tars'), path.join(emptyFolder(), 'written')];
      const writer = new Writer(source, { maxShardSamples: 100, columns: { number: 'double' }, classes: ['a', 'b'] });
      const expected: unknown[] = [];
      for (let i = 0; i < 300; i++) {
        const image = Buffer.concat([readFileSync('test/fixtures/odd-images/one-pixel.jpg'), Buffer.alloc(i * i, i)]);
        const key = `k/${String(i).padStart(4, '0')}`;
        await writer.add({
          key,
          [i % 2 ? 'jpg' : 'jpeg']: image,
          label: i % 2,
          txt: `ü ${i}`,
          columns: { number: i / 8 },
        });
        expected.push([key, createHash('sha256').update(image).digest('hex'), i % 2, i / 8, `ü ${i}`]);
      }
      await writer.close();
      await convert(source, place, { format: layout });
      expect(runPython(READERS[layout], place, PYTHONS[layout]!)).toEqual(expected);
    },
  );
}
