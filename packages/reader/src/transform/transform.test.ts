import { OptionError } from '@shardtool/base';
import { expect, test } from 'vitest';
import { STEPS } from './step-table.js';
import { compileTransform, type TransformInput } from './transform.js';

/** Compiles a transform as read from JSON, without types. */
function compileJson(list: unknown) {
  return compileTransform(list as TransformInput);
}

test('the presets make 224x224 uint8 images, height x width x channels', () => {
  for (const preset of ['train224', 'eval224'] as const) {
    expect(compileTransform(preset)).toMatchObject({
      outputShape: { height: 224, width: 224 },
      dtype: 'uint8',
      layout: 'nhwc',
      pixelLayout: 'uint8-nhwc',
      normalization: null,
    });
  }
});

test('omitted parameters have the defaults of torchvision', () => {
  const { steps } = compileTransform([
    { name: 'randomResizedCrop', size: 224 },
    { name: 'randomHorizontalFlip' },
    { name: 'randomCrop', size: [3, 4] },
  ]);
  expect(steps).toEqual([
    {
      name: 'randomResizedCrop',
      size: 224,
      scale: [0.08, 1],
      ratio: [3 / 4, 4 / 3],
      interpolation: ['bilinear'],
      antialias: true,
      p: 1,
    },
    { name: 'randomHorizontalFlip', p: 0.5 },
    { name: 'randomCrop', size: [3, 4], padding: 0, padIfNeeded: false, fill: 0, paddingMode: 'constant', p: 1 },
  ]);
});

test("steps and parameters may be spelled as torchvision's classes and as in Python", () => {
  const spellings = [
    { name: 'randomIoUCrop', minScale: 0.5 },
    { name: 'RandomIoUCrop', min_scale: 0.5 },
    { name: 'random_iou_crop', min_scale: 0.5 },
    { name: 'randomIouCrop', minScale: 0.5 },
  ];
  const compiled = spellings.map((step) => compileJson([step]).steps);
  expect(compiled[0]).toMatchObject([{ name: 'randomIoUCrop', minScale: 0.5, maxScale: 1 }]);
  for (const steps of compiled) expect(steps).toEqual(compiled[0]);
  for (const [name, { like }] of Object.entries(STEPS)) {
    if (like !== null) expect(like.toLowerCase()).toBe(name.toLowerCase());
  }
  expect(() => compileJson([{ name: 'ToTensor' }])).toThrow('is not needed: images already are arrays');
  expect(() => compileJson([{ name: 'resise' }])).toThrow('is unknown; did you mean "resize"? Known steps: ');
});

test('without a step that sets a size, images keep their sizes', () => {
  expect(compileTransform([]).outputShape).toBeNull();
  expect(compileTransform([{ name: 'resize', size: 256 }, { name: 'randomHorizontalFlip' }]).outputShape).toBeNull();
  expect(compileTransform([{ name: 'resize', size: [20, 30] }]).outputShape).toEqual({ height: 20, width: 30 });
  expect(
    compileTransform([
      { name: 'centerCrop', size: [10, 20] },
      { name: 'resize', size: 5 },
    ]).outputShape,
  ).toEqual({ height: 5, width: 10 });
});

test('normalize makes float32 [3, height, width], with or without toDtype before it', () => {
  const normalize = { name: 'normalize', mean: [0.5, 0.4, 0.3], std: [0.2, 0.25, 0.5] } as const;
  const float = { name: 'toDtype', dtype: 'float32', scale: true } as const;
  const expected = {
    dtype: 'float32',
    layout: 'nchw',
    pixelLayout: 'float32-nchw',
    normalization: { mean: [0.5, 0.4, 0.3], std: [0.2, 0.25, 0.5] },
  };
  expect(compileTransform([{ name: 'centerCrop', size: 8 }, normalize])).toMatchObject(expected);
  expect(compileTransform([float, normalize, { name: 'layout', layout: 'nchw' }])).toMatchObject(expected);
});

test('toDtype scales to 1 only with scale: true', () => {
  expect(compileTransform([{ name: 'toDtype', dtype: 'float32', scale: true }]).normalization).toEqual({
    mean: [0, 0, 0],
    std: [1, 1, 1],
  });
  expect(compileTransform([{ name: 'toDtype', dtype: 'float32' }]).normalization).toEqual({
    mean: [0, 0, 0],
    std: [1 / 255, 1 / 255, 1 / 255],
  });
});

test('layout turns uint8 images into [3, height, width]', () => {
  expect(compileTransform([{ name: 'layout', layout: 'nchw' }]).pixelLayout).toBe('uint8-nchw');
});

test('a compiled transform can be sent to a worker', () => {
  const compiled = compileTransform('train224');
  expect(structuredClone(compiled)).toEqual(compiled);
});

test.each([
  [[{ name: 'resise', size: 3 }], /Step 1 .*"resise".* resize, .*centerCrop, centerCropOrPad, cornerCrop, randomCrop/],
  [[{ name: 'randomHorizontalFlip' }, { size: 3 }], /Step 2/],
  [['resize'], /Step 1/],
  [[{ name: 'resize' }], /Step 1 of the transform, resize, .*size.*parameters: size \(the shorter side/],
  [[{ name: 'resize', size: 0 }], /resize.*size/],
  [[{ name: 'resize', size: 5000 }], /resize.*size/],
  [[{ name: 'resize', size: 256, maxSize: 256 }], /maxSize must be more than size/],
  [[{ name: 'resize', size: [2, 2], maxSize: 256 }], /maxSize/],
  [[{ name: 'centerCrop', size: [1, 2, 3] }], /centerCrop/],
  [[{ name: 'centerCrop', size: 2, interpolation: 'nearest' }], /interpolation/],
  [
    [{ name: 'randomHorizontalFlip', p: 2 }],
    /randomHorizontalFlip.*\(p must be at most 1, and is 2\)\. Its parameters: p \(a probability\)/,
  ],
  [[{ name: 'randomResizedCrop', size: 2, scale: [1, 0.5] }], /scale must have the smaller value first/],
  [[{ name: 'normalize', mean: [0, 0, 0], std: [1, 0, 1] }], /std must have only values above 0/],
  [
    [
      { name: 'toDtype', dtype: 'float32' },
      { name: 'resize', size: 2 },
    ],
    /Step 2 .*resize, must come before toDtype/,
  ],
  [
    [
      { name: 'normalize', mean: [0, 0, 0], std: [1, 1, 1] },
      { name: 'toDtype', dtype: 'uint8' },
    ],
    /Step 2 .*toDtype, cannot come after normalize/,
  ],
  ['train22', /"train22"; did you mean "train224"\? Pass .* or one of train224, eval224/],
  [{ name: 'resize' }, /list of steps/],
])('the error for %j names the step', (list, message) => {
  expect(() => compileJson(list)).toThrow(message);
  expect(() => compileJson(list)).toThrow(OptionError);
});

test.each(['float32', 'float16'])('%s is nchw unless the list says nhwc', (dtype) => {
  const floats = { name: 'toDtype', dtype };
  expect(compileJson([floats])).toMatchObject({ dtype, layout: 'nchw' });
  expect(compileJson([floats, { name: 'layout', layout: 'nhwc' }])).toMatchObject({
    dtype,
    layout: 'nhwc',
    pixelLayout: 'uint8-nhwc',
  });
});
