import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fieldPayload, msgpack, openSource, type SamplePosition } from '@shardtool/format';
import { afterAll, expect, test } from 'vitest';
import { pythonWith, runPython } from './python.js';

const folder = mkdtempSync(join(tmpdir(), 'shardtool-msgpack-python-'));
afterAll(() => rmSync(folder, { recursive: true }));
const python = pythonWith('msgpack');

async function samplesOf(path: string): Promise<SamplePosition[]> {
  const source = await openSource(path);
  const samples: SamplePosition[] = [];
  for await (const batch of msgpack.samples(source)) samples.push(...batch);
  await source.close();
  return samples;
}

/** For each sample: its key and the payloads of its fields as hexadecimal. */
async function payloadsOf(path: string): Promise<Record<string, Record<string, string>>> {
  const file = readFileSync(path);
  const samples = await samplesOf(path);
  return Object.fromEntries(
    samples.map(({ key, fields }) => [
      key,
      Object.fromEntries(
        fields.map(({ name, offset, bytes, msgpack }) => {
          const payload = fieldPayload(file.subarray(offset, offset + bytes), msgpack);
          return [name, Buffer.from(payload).toString('hex')];
        }),
      ),
    ]),
  );
}

test.runIf(python)('msgpack.Unpacker of Python streams a shard as it is, with bytes, strings and integers', () => {
  const path = join(folder, 'ours.msgpack');
  const fd = openSync(path, 'wx');
  const writer = msgpack.createWriter(fd, path);
  const sizes = [0, 1, 255, 256, 65_535, 65_536, 300_000];
  const labels = ['0', '127', '128', '65536', '18446744073709551615', '-9223372036854775808', '007'];
  for (const [i, bytes] of sizes.entries()) {
    const label = Buffer.from(labels[i]!);
    const text = Buffer.from('é'.repeat(i * 40));
    const fields = [
      { name: 'cls', bytes: label.length },
      { name: 'jpg', bytes },
      { name: 'txt', bytes: text.length },
    ];
    const [cls, image, txt] = writer.begin(`größe/${i}`, fields);
    cls!.set(label);
    image!.fill(i);
    txt!.set(text);
    writer.commit();
  }
  writer.finish();
  closeSync(fd);
  const program = `
import json, sys, msgpack
samples = list(msgpack.Unpacker(open(json.load(sys.stdin), "rb")))
print(json.dumps([[s["__key__"], list(s), len(s["jpg"]), set(s["jpg"]) <= {i}, len(s["txt"]),
    s["cls"] if isinstance(s["cls"], int) else s["cls"].hex()] for i, s in enumerate(samples)]))
`;
  const found = runPython<[string, string[], number, boolean, number, unknown][]>(program, path);
  expect(found.map(([key]) => key)).toEqual(sizes.map((_, i) => `größe/${i}`));
  expect(found.map(([, names]) => names)).toEqual(sizes.map(() => ['__key__', 'jpg', 'txt', 'cls']));
  expect(found.map(([, , bytes, same]) => [bytes, same])).toEqual(sizes.map((bytes) => [bytes, true]));
  expect(found.map(([, , , , letters]) => letters)).toEqual(sizes.map((_, i) => i * 40));
  // JSON numbers lose the last digits of 64-bit integers here; the test of the codec checks each of them.
  expect(found.map(([, , , , , cls]) => cls)).toEqual([0, 127, 128, 65_536, 2 ** 64, -(2 ** 63), '303037']);
});

test.runIf(python)('a shard that Python wrote is read back correctly, whatever types its fields have', async () => {
  const path = join(folder, 'theirs.msgpack');
  const program = `
import json, sys, msgpack
path = json.load(sys.stdin)
packer = msgpack.Packer()
old = msgpack.Packer(use_bin_type=False)
samples = [
    {"__key__": "a", "jpg": bytes(range(256)) * 300, "cls": 7},
    {"jpg": b"", "txt": "grüße", "__key__": "späte/key", "cls": -70000},
    {"__key__": "large", "cls": 2**64 - 1, "score": 0.25, "none": None, "yes": True},
    {"__key__": "nested", "boxes": [[1, 2, 3, 4], [5, 6, 7, 8]], "meta": {"a": {"b": []}, "c": "x"}},
    {"__key__": "long", "list": list(range(70000)), "txt": "y" * 70000},
]
with open(path, "wb") as file:
    for sample in samples:
        file.write(packer.pack(sample))
    # Raw bytes as Python 2 wrote them: a string that is not text.
    file.write(old.pack({"__key__": "old", "jpg": b"\\xff\\xd8" * 40}))
wanted = {}
for sample in samples + [{"__key__": "old", "jpg": b"\\xff\\xd8" * 40}]:
    payloads = {}
    for name, value in sample.items():
        if name == "__key__":
            continue
        if isinstance(value, bytes):
            payload = value
        elif isinstance(value, str):
            payload = value.encode()
        else:
            payload = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
        payloads[name] = payload.hex()
    wanted[sample["__key__"]] = payloads
print(json.dumps(wanted))
`;
  const wanted = runPython<Record<string, Record<string, string>>>(program, path);
  expect(await payloadsOf(path)).toEqual(wanted);
});

test.runIf(python)('the error for extension types of Python (a timestamp) names them', async () => {
  const path = join(folder, 'extension.msgpack');
  const program = `
import json, sys, msgpack
with open(json.load(sys.stdin), "wb") as file:
    file.write(msgpack.packb({"__key__": "good", "cls": 1}))
    file.write(msgpack.packb({"__key__": "bad", "when": msgpack.Timestamp(1)}))
print("null")
`;
  runPython(program, path);
  await expect(samplesOf(path)).rejects.toThrow('there is an extension type at byte');
});
