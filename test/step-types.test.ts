import { OptionError } from '@shardtool/base';
import { type LoaderOptions, openDataset, type StepInput, type TransformInput } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { packedSmall } from './datasets.js';

/** Each call is rejected by the compiler (otherwise TypeScript reports an unused directive), and at run time. */
test('an unknown property of a step is an error of the compiler and of the loader', async () => {
  await using dataset = await openDataset(await packedSmall({ samples: 8 }));
  const calls = [
    // @ts-expect-error: a property that the step does not have.
    () => dataset.loader({ transform: [{ name: 'resize', size: 8, sise: 9 }] }),
    // @ts-expect-error: the same, after other steps.
    () => dataset.loader({ transform: [{ name: 'grayscale' }, { name: 'centerCrop', size: 8, p: 1, x: 1 }] }),
    () =>
      dataset.loader({
        // @ts-expect-error: the same, in a step within a step.
        transform: [{ name: 'randomApply', p: 0.5, transforms: [{ name: 'grayscale', x: 1 }] }],
      }),
    // @ts-expect-error: a step that does not exist.
    () => dataset.loader({ transform: [{ name: 'resise', size: 3 }] }),
  ];
  for (const call of calls) await expect((async () => call().info())()).rejects.toThrow(OptionError);
});

test('steps from variables of any type are accepted', async () => {
  await using dataset = await openDataset(await packedSmall({ samples: 8 }));
  const steps: StepInput[] = [{ name: 'resize', size: 8 }];
  const constant = [
    { name: 'resize', size: [8, 8] },
    { name: 'toDtype', dtype: 'float32' },
  ] as const;
  const options: LoaderOptions = { transform: steps };
  const input: TransformInput | undefined = undefined as TransformInput | undefined;
  const loaders = [
    dataset.loader({ transform: steps }),
    dataset.loader(options),
    dataset.loader({ ...options, batchSize: 4 }),
    dataset.loader({ transform: input }),
    dataset.loader({ transform: constant }),
    dataset.loader({ transform: [...steps, { name: 'centerCrop', size: 3 }] }),
    dataset.loader({
      transform: [{ name: 'randomChoice', transforms: [[{ name: 'grayscale' }, { name: 'randomInvert' }]] }],
    }),
  ];
  expect(loaders).toHaveLength(7);
  const floats = dataset.loader({ transform: constant, batchSize: 4, workers: 1 });
  for await (const { images } of floats) {
    const values: Float32Array = images;
    expect(values.length).toBe(4 * 8 * 8 * 3);
    break;
  }
});
