/**
 * Makes a small ONNX model. It predicts the class whose mean colour is nearest to that of the image.
 *
 *   node examples/inference/model.mjs shards model.onnx
 */
import { writeFileSync } from 'node:fs';
import { openDataset } from 'shardtool';
import { TRANSFORM } from './transform.mjs';

/** onnx.TensorProto.FLOAT and onnx.AttributeProto.INT. */
const FLOAT = 1;
const INTEGER = 2;

const [shards, output] = process.argv.slice(2);
if (output === undefined) {
  console.error('Usage: node examples/inference/model.mjs shards model.onnx');
  process.exit(2);
}
const dataset = await openDataset(shards).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
const sums = dataset.classes.map(() => [0, 0, 0]);
const counts = dataset.classes.map(() => 0);
const loader = dataset.loader({ transform: TRANSFORM, lastBatch: 'partial', fields: [] });
for await (const { images, labels, shape } of loader) {
  const pixels = shape[2] * shape[3];
  for (const [row, label] of labels.entries()) {
    for (let channel = 0; channel < 3; channel++) {
      const first = (3 * row + channel) * pixels;
      sums[label][channel] += images.subarray(first, first + pixels).reduce((a, b) => a + b) / pixels;
    }
    counts[label]++;
  }
}
await dataset.close();

// The mean m that is nearest to x has the largest 2mx - mm.
const means = sums.map((sum, cls) => sum.map((value) => value / Math.max(1, counts[cls])));
const slopes = means.map((mean) => mean.map((value) => 2 * value));
const offsets = means.map((mean) => -mean.reduce((sum, value) => sum + value * value, 0));
writeFileSync(output, modelOf(slopes, offsets));

/** An onnx.ModelProto that maps float32 images [n, 3, h, w] to float32 scores [n, classes]. */
function modelOf(slopes, offsets) {
  const graph = [
    field(1, node('GlobalAveragePool', ['images'], 'pooled')),
    field(1, node('Flatten', ['pooled'], 'colours')),
    field(1, node('Gemm', ['colours', 'slopes', 'offsets'], 'scores', { transB: 1 })),
    field(2, 'nearest-colour'),
    field(5, tensor('slopes', [slopes.length, 3], slopes.flat())),
    field(5, tensor('offsets', [offsets.length], offsets)),
    field(11, value('images', ['n', 3, 'h', 'w'])),
    field(12, value('scores', ['n', offsets.length])),
  ];
  const opset = field(2, 17);
  return Buffer.concat([field(1, 8), field(7, Buffer.concat(graph)), field(8, opset)]);
}

function node(operator, inputs, output, integers = {}) {
  const attributes = Object.entries(integers).map(([name, integer]) =>
    field(5, Buffer.concat([field(1, name), field(3, integer), field(20, INTEGER)])),
  );
  return Buffer.concat([
    ...inputs.map((input) => field(1, input)),
    field(2, output),
    field(4, operator),
    ...attributes,
  ]);
}

function tensor(name, dims, values) {
  const bytes = Buffer.from(Float32Array.from(values).buffer);
  return Buffer.concat([...dims.map((dim) => field(1, dim)), field(2, FLOAT), field(8, name), field(9, bytes)]);
}

function value(name, dims) {
  const shape = dims.map((dim) => field(1, typeof dim === 'string' ? field(2, dim) : field(1, dim)));
  const type = field(1, Buffer.concat([field(1, FLOAT), field(2, Buffer.concat(shape))]));
  return Buffer.concat([field(1, name), field(2, type)]);
}

/** A field of a protobuf message: a number below 2^31, or text or bytes after their length. */
function field(number, content) {
  if (typeof content === 'number') return Buffer.from([...varint(number << 3), ...varint(content)]);
  const bytes = Buffer.from(content);
  return Buffer.concat([Buffer.from([...varint((number << 3) | 2), ...varint(bytes.length)]), bytes]);
}

function varint(value) {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)];
}
