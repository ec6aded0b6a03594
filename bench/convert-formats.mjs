/**
 * Tar shards converted to the formats of other software, against what that software writes of the same tars, in rounds that alternate:
 *
 *   node bench/convert-formats.mjs [PHOTOS] [--rounds 5] [--folder FOLDER] [--only parquet,mds,tfrecord]
 *
 * shardtool: `convert` with one worker and with two, checksums of every field and file, indexes, flushed to the disk. The others: what
 * their writers take of one thread that reads the tars, imports left out, nothing checked or flushed; for Parquet the Hub's
 * `datasets` (its reader of WebDataset, then `to_parquet`) and, as the least that can be done, tarfile and pyarrow's writer.
 *
 * PHOTOS is a folder as `bench/make-photos.mjs` makes it; tars are of 32 MiB. Python is the first of SHARDTOOL_REFEREES (paths, with ":" between
 * them) that has a writer, else SHARDTOOL_PYTHON, else python3; a writer that it does not have is left out. Everything lies in FOLDER, where /dev/shm leaves the disk out of it.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { convert, pack } from '@shardtool/writer';
import { rate } from './figures.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '5' },
    folder: { type: 'string', default: existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir() },
    only: { type: 'string', default: 'parquet,mds,tfrecord' },
  },
});
const photos = path.resolve(positionals[0] ?? 'examples/photos');
const rounds = Number(values.rounds);
const formats = values.only.split(',');
const python = process.env.SHARDTOOL_PYTHON ?? 'python3';
const work = mkdtempSync(path.join(values.folder, 'shardtool-convert-'));

/** Samples of the tars, as their readers have them: a name and the bytes of `jpg` and `cls`. */
const SAMPLES = `
import glob, os, sys, tarfile, time
tars, out = sorted(glob.glob(sys.argv[1] + "/*.tar")), sys.argv[2]
def samples(tar):
    with tarfile.open(tar) as archive:
        sample = {}
        for member in archive:
            key, field = member.name.rsplit(".", 1)
            if sample and sample["key"] != key:
                yield sample
                sample = {}
            sample["key"] = key
            sample[field] = archive.extractfile(member).read()
        if sample:
            yield sample
`;
const END = '\nprint(time.perf_counter() - start, time.process_time() - begun)\n';

const WRITERS = {
  parquet: {
    datasets: `${SAMPLES}
import datasets
datasets.disable_progress_bars()
datasets.disable_caching()
start, begun = time.perf_counter(), time.process_time()
loaded = datasets.load_dataset("webdataset", data_files=tars, split="train", cache_dir=out + "-cache")
loaded = loaded.cast_column("jpg", datasets.Image(decode=False))
loaded.to_parquet(out)
${END}`,
    'tarfile and pyarrow': `${SAMPLES}
import pyarrow as pa, pyarrow.parquet as pq
os.makedirs(out)
schema = pa.schema([("__key__", pa.string()), ("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])), ("label", pa.int64())])
start, begun = time.perf_counter(), time.process_time()
for number, tar in enumerate(tars):
    with pq.ParquetWriter(f"{out}/train-{number:05}-of-{len(tars):05}.parquet", schema, compression="none", use_dictionary=False) as writer:
        rows = []
        def write():
            writer.write_table(pa.Table.from_pylist(rows, schema))
            rows.clear()
        for sample in samples(tar):
            rows.append({"__key__": sample["key"], "image": {"bytes": sample["jpg"], "path": None}, "label": int(sample["cls"])})
            if len(rows) == 300:
                write()
        if rows:
            write()
${END}`,
  },
  mds: {
    'tarfile and MDSWriter': `${SAMPLES}
from streaming import MDSWriter
start, begun = time.perf_counter(), time.process_time()
with MDSWriter(out=out, columns={"__key__": "str", "image": "bytes", "label": "int"}, size_limit=1 << 25) as writer:
    for tar in tars:
        for sample in samples(tar):
            writer.write({"__key__": sample["key"], "image": sample["jpg"], "label": int(sample["cls"])})
${END}`,
  },
  tfrecord: {
    'tarfile and TFRecordWriter': `${SAMPLES}
import tensorflow as tf
def bytes_of(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
os.makedirs(out)
start, begun = time.perf_counter(), time.process_time()
for number, tar in enumerate(tars):
    with tf.io.TFRecordWriter(f"{out}/{number:06}.tfrecord") as writer:
        for sample in samples(tar):
            writer.write(tf.train.Example(features=tf.train.Features(feature={
                "__key__": bytes_of(sample["key"].encode()), "image/encoded": bytes_of(sample["jpg"]),
                "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(sample["cls"])])),
            })).SerializeToString())
${END}`,
  },
};

/** What each writer imports. */
const MODULES = { parquet: 'datasets, pyarrow', mds: 'streaming', tfrecord: 'tensorflow' };
function pythonOf(format) {
  const has = (one) => spawnSync(one, ['-c', `import ${MODULES[format]}`]).status === 0;
  return process.env.SHARDTOOL_REFEREES?.split(':').find(has) ?? python;
}

/** Seconds by the clock and of the processors, or null where the software is not here. */
function theirs(program, own) {
  const out = path.join(work, 'theirs');
  const { status, stdout, stderr } = spawnSync(own, ['-c', program, path.join(work, 'tars'), out], {
    encoding: 'utf8',
  });
  for (const made of [out, `${out}-cache`]) rmSync(made, { recursive: true, force: true });
  if (status === 0) {
    const [seconds, busy] = stdout.trim().split('\n').at(-1).split(' ').map(Number);
    return { seconds, busy };
  }
  if (stderr.includes('ImportError') || stderr.includes('ModuleNotFoundError')) return null;
  throw new Error(stderr);
}

async function ours(format, workers) {
  const out = path.join(work, 'ours');
  const start = performance.now();
  const before = process.cpuUsage();
  await convert(path.join(work, 'tars'), out, { format, workers });
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(before);
  rmSync(out, { recursive: true });
  return { seconds, busy: (user + system) / 1e6 };
}

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

try {
  const { samples, bytes } = await pack(photos, path.join(work, 'tars'), { maxShardBytes: 2 ** 25 });
  console.log(`${samples} samples, ${Math.round(bytes / 1e6)} MB of tars, ${rounds} rounds`);
  for (const format of formats) {
    const results = [];
    const own = pythonOf(format);
    for (let round = -1; round < rounds; round++) {
      const result = {
        'shardtool, one worker': await ours(format, 1),
        'shardtool, two workers': await ours(format, 2),
      };
      for (const [name, program] of Object.entries(WRITERS[format])) {
        const taken = theirs(program, own);
        if (taken !== null) result[name] = taken;
      }
      // The first round fills the page cache.
      if (round >= 0) results.push(result);
    }
    for (const name of Object.keys(results[0])) {
      const ratioTo = (ours) => median(results.map((result) => result[name].seconds / result[ours].seconds));
      const busy = median(results.map((result) => result[name].busy / result['shardtool, one worker'].busy));
      const [one, two] = [ratioTo('shardtool, one worker'), ratioTo('shardtool, two workers')];
      if (!name.startsWith('shardtool')) rate(`convert to ${format}, of ${name}`, two);
      const perSecond = Math.round(samples / median(results.map((result) => result[name].seconds)));
      console.log(
        `${format.padEnd(9)} ${name.padEnd(27)} ${String(perSecond).padStart(7)} samples a second; one worker ${one.toFixed(2)}, two ${two.toFixed(2)} times that; by processor time, one worker, ${busy.toFixed(2)}`,
      );
    }
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
