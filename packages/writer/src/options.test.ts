import { OptionError } from '@shardtool/base';
import { expect, test } from 'vitest';
import { checkOptions, PACK_DEFAULTS, recodeOptions } from './options.js';

test('an option that is omitted or undefined has its default', () => {
  const checked = checkOptions({ seed: undefined, name: 'train' });
  const { quality, ...defaults } = PACK_DEFAULTS;
  expect(checked).toMatchObject({ ...defaults, name: 'train' });
  expect(checked.quality).toBeUndefined();
  expect(quality).toBe(90);
  expect(checked.workers).toBeGreaterThan(0);
});

test('a size is a number of bytes, or a text with a unit', () => {
  const { maxShardBytes, planMemory } = checkOptions({ maxShardBytes: '64MiB', planMemory: 1000 });
  expect({ maxShardBytes, planMemory }).toEqual({ maxShardBytes: 64 * 2 ** 20, planMemory: 1000 });
});

test('an invalid option is an error that names it', () => {
  const wrong = (options: object, name: string) => {
    expect(() => checkOptions(options)).toThrow(OptionError);
    expect(() => checkOptions(options)).toThrow(name);
  };
  wrong({ maxShardBytes: 0 }, 'maxShardBytes');
  wrong({ maxShardBytes: '0' }, 'maxShardBytes');
  wrong({ planMemory: '2GiB' }, 'planMemory');
  wrong({ maxSampleBytes: '1 sheep' }, 'maxSampleBytes');
  wrong({ seed: -1 }, 'seed');
  wrong({ format: 'zip' }, 'format');
  wrong({ name: '../x' }, 'name');
  wrong({ fields: ['.png'] }, 'fields.0');
  wrong({ quality: 101 }, 'quality');
  wrong({ maxBad: 2 }, 'maxBad');
  wrong({ workerz: 2 }, 'workerz');
  wrong({ files: ['a.jpg'], exclude: ['b'] }, 'files');
});

test('images are re-encoded only if an option requires it', () => {
  expect(recodeOptions(checkOptions({}))).toBeNull();
  expect(recodeOptions(checkOptions({ resize: 256 }))).toEqual({ resize: 256, quality: 90, imageFormat: undefined });
  expect(recodeOptions(checkOptions({ quality: 80 }))).toEqual({
    resize: undefined,
    quality: 80,
    imageFormat: undefined,
  });
});
