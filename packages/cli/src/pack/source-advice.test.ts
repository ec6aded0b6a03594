import { expect, test } from 'vitest';
import { adviceOnClasses } from './source-advice.js';

test('class folders, and images whose classes a table says, need no advice', () => {
  expect(adviceOnClasses(['cat', 'dog'], 2, 'photos', false)).toEqual([]);
  expect(adviceOnClasses(['cat', 'test'], 2, 'photos', false)).toEqual([]);
  expect(adviceOnClasses([], 2, 'photos', true)).toEqual([]);
  expect(adviceOnClasses([], 0, 'photos', false)).toEqual([]);
});

test('a flat folder, parts of a dataset, and masks beside images are recognised', () => {
  expect(adviceOnClasses([], 2, 'photos', false)).toEqual([expect.stringContaining('its label is -1')]);
  expect(adviceOnClasses(['train', 'val'], 2, 'photos', false)).toEqual([
    expect.stringContaining('--splits makes a dataset of each, or pack one of them (photos/train)'),
  ]);
  expect(adviceOnClasses(['images', 'masks'], 2, 'photos', false)).toEqual([
    expect.stringContaining('--pair masks=seg.png'),
  ]);
});
