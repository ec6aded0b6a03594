// Reads the damaged files that it receives, one by one, like a loader or a conversion. Returns for each the number of
// fields and the unexpected results: another error than a ShardtoolError, bytes that were not written, too large allocations.
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { crc32, ShardtoolError } from '@shardtool/base';
import { layoutOf, openSource } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import { hdf5 } from '#format/layouts/hdf5/index';
import { PATIENCE } from '#format/layouts/hdf5/thread';
import { streamSamples } from '#writer/convert/stream/stream-samples';

/** A read may request this many bytes more than the file has. */
const SPARE_BYTES = 8 << 20;

process.once('message', async ({ kinds, cases }) => {
  const known = {};
  for (const [name, kind] of Object.entries(kinds)) {
    known[name] = [];
    for (const file of kind.files) known[name].push(await soundOf(kind, file));
  }
  // Its library goes round for ever in some damaged files.
  PATIENCE.ms = 700;
  for (const [number, one] of cases.entries()) {
    const kind = kinds[one.kind];
    const which = one.file % kind.files.length;
    const bytes = damaged(readFileSync(kind.files[which]), one);
    process.send({ number, ...(await examine(kind, kind.files[which], known[one.kind][which], bytes, one.isHere)) });
  }
  process.disconnect();
});

async function soundOf(kind, file) {
  const digests = [];
  await walk(kind, file, readFileSync(file), true, (digest, _, sample) => digests.push({ digest, sample }));
  if (digests.length === 0) throw new Error(`${file} has no samples`);
  return digests;
}

async function examine(kind, file, sound, bytes, isHere) {
  const outcome = { fields: 0, trouble: null };
  const isChecked = new RegExp(kind.checked).test(path.basename(file));
  try {
    await walk(kind, file, bytes, isHere, (digest, length, sample) => {
      outcome.fields++;
      // Names may have changed, so that samples are others; what was written has not.
      const isKnown = kind.isInOrder
        ? sound.some((one) => one.digest === digest && one.sample === sample)
        : length === 0 || sound.some((one) => one.digest === digest);
      if (isChecked && !isKnown) outcome.trouble ??= `other bytes in field ${outcome.fields - 1}`;
    });
  } catch (error) {
    if (!isOurs(error)) outcome.trouble ??= String(error.stack);
  }
  return outcome;
}

/** Whether an error has the base class of our errors, from the built package or from one of its modules. */
function isOurs(error) {
  for (let one = error; one !== null; one = Object.getPrototypeOf(one))
    if (one.constructor?.name === ShardtoolError.name) return true;
  return false;
}

/** Reads all fields of all samples, and returns the digest of each. */
async function walk(kind, file, bytes, isHere, found) {
  if (kind.isList) return walkListed(file, bytes, found);
  if (kind.layout === 'tar of tars') return walkStream(file, bytes, found);
  const layout = kind.layout === 'hdf5' ? hdf5 : await layoutOf(kind.layout);
  const from = () => (kind.layout === 'hdf5' ? fileOf(bytes) : sourceOf(file, bytes, isHere));
  if (layout.headers !== undefined && layout.unpack === undefined) for await (const _ of layout.headers(from()));
  const view = await (layout.expand ?? layout.unpack ?? ((source) => source))(await from());
  let sample = 0;
  try {
    for await (const samples of layout.samples(view)) {
      for (const { offset, bytes: span, fields } of samples) {
        sample++;
        for (const field of fields) {
          const isInside =
            field.offset >= 0 &&
            field.bytes >= 0 &&
            (layout.expand !== undefined || (field.offset >= offset && field.offset + field.bytes <= offset + span));
          if (!isInside) throw new Error(`outside: ${JSON.stringify(field)}`);
          const payload = Buffer.alloc(field.bytes);
          const read = await view.readAt(field.offset, payload);
          if (read < payload.length) throw new Error(`${read} of ${payload.length} bytes`);
          // A reader compares a field with its checksum, if there is one.
          if (field.crc32 === undefined || field.crc32 === crc32(payload))
            found(digestOf(payload), payload.length, sample);
        }
      }
    }
  } finally {
    await view.close();
  }
}

function digestOf(bytes) {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Reads a stream like `convert`, in pieces that end anywhere. */
async function walkStream(file, bytes, found) {
  const take = async (_, pieces) => {
    const payload = [];
    for await (const piece of pieces) payload.push(Buffer.from(piece));
    found(digestOf(Buffer.concat(payload)), payload.length);
    return {};
  };
  const half = bytes.length >> 1;
  const input = Readable.from([bytes.subarray(0, half), bytes.subarray(half)], { objectMode: false });
  const payloads = { take, forget: () => undefined };
  for await (const _ of streamSamples(input, path.basename(file), null, payloads, 1 << 30, () => undefined));
}

/** Makes a folder whose list is damaged. All other files are intact. */
async function walkListed(list, bytes, found) {
  const place = path.join(folder, path.dirname(list).replaceAll(path.sep, '_'));
  const name = path.basename(list);
  cpSync(path.dirname(list), place, { recursive: true, force: false });
  const lists = readdirSync(place).filter((other) => /\.(jsonl|json|csv|py)$/.test(other));
  for (const other of lists) rmSync(path.join(place, other));
  writeFileSync(path.join(place, name), bytes);
  const dataset = await openDataset(place);
  try {
    for await (const { fields } of dataset.samples()) {
      for (const [field, payload] of Object.entries(fields))
        if (field !== 'cls') found(digestOf(payload), payload.length);
    }
  } finally {
    await dataset.close();
  }
}

function damaged(sound, { cut, flips, numbers, move }) {
  const bytes = Buffer.from(sound);
  const at = (part) => Math.floor((part / 1_000_001) * bytes.length);
  for (const flip of flips) bytes[at(flip.at)] ^= 1 << flip.bit;
  for (const one of numbers) bytes.writeUInt32LE(one.number, Math.max(0, Math.min(at(one.at), bytes.length - 4)));
  if (move) bytes.copyWithin(at(move.to), at(move.from), at(move.from) + move.bytes);
  return bytes.subarray(0, cut === null ? bytes.length : at(cut));
}

const folder = mkdtempSync(path.join(tmpdir(), 'shardtool-damaged-'));
process.on('exit', () => rmSync(folder, { recursive: true }));
let files = 0;

/** Writes the bytes to a file, because HDF5 needs a file name. */
async function fileOf(bytes) {
  const file = path.join(folder, `${files++}.h5`);
  writeFileSync(file, bytes);
  const source = await openSource(file);
  return {
    ...source,
    close: async () => {
      await source.close();
      rmSync(file);
    },
  };
}

function sourceOf(location, bytes, isHere) {
  const read = (offset, target) => {
    if (offset < 0 || target.length > bytes.length + SPARE_BYTES)
      throw new Error(`a read of ${target.length} bytes at ${offset}`);
    return bytes.copy(target, 0, offset, offset + target.length);
  };
  return {
    location,
    size: bytes.length,
    readAt: async (offset, target) => read(offset, target),
    ...(isHere && { readNow: read }),
    close: async () => undefined,
  };
}
