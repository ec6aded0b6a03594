import { expect, test } from 'vitest';
import { adviceOnClasses, adviceOnPatterns } from './source-advice.js';

test('class folders, and images whose classes are in a table, need no advice', () => {
  expect(adviceOnClasses(['cat', 'dog'], 2, 'photos', null)).toEqual([]);
  expect(adviceOnClasses(['cat', 'test'], 2, 'photos', null)).toEqual([]);
  expect(adviceOnClasses([], 2, 'photos', 'other')).toEqual([]);
  expect(adviceOnClasses(['cat'], 2, 'photos', 'labels')).toEqual([]);
  expect(adviceOnClasses([], 0, 'photos', null)).toEqual([]);
});

test('a table of labels without classes is reported, with the column that should hold them', () => {
  expect(adviceOnClasses([], 2, 'photos', 'labels')).toEqual([
    expect.stringMatching(/no row of --labels has a class.*into its column "class"/),
  ]);
});

test('a flat folder, splits of a dataset, and masks next to images are recognised', () => {
  expect(adviceOnClasses([], 2, 'photos', null)).toEqual([expect.stringContaining('their label is -1')]);
  expect(adviceOnClasses(['train', 'val'], 2, 'photos', null)).toEqual([
    expect.stringContaining('--splits makes a dataset of each, or pack one of them (photos/train)'),
  ]);
  expect(adviceOnClasses(['train', 'val'], 2, 'photos', null, ['train/metadata.csv', 'val/metadata.csv'])).toEqual([
    expect.stringMatching(/with the classes in train\/metadata\.csv and val\/metadata\.csv$/),
  ]);
  expect(adviceOnClasses(['a', 'b'], 2, 'photos', null, ['a/metadata.jsonl'])).toEqual([
    expect.stringContaining(
      'a/metadata.jsonl was not read, because only a table in the packed folder itself is used: pack photos/a to use it',
    ),
  ]);
  expect(adviceOnClasses(['images', 'masks'], 2, 'photos', null)).toEqual([
    expect.stringContaining('--pair masks=seg.png'),
  ]);
});

test('a pattern that matches nothing directly below the source, and is not searched elsewhere, is reported', () => {
  expect(adviceOnPatterns(['*_001.jpg'], 'examples/photos')).toEqual([
    "  --exclude '*_001.jpg' matches nothing directly below examples/photos: to match in all folders, use '**/*_001.jpg'",
  ]);
  expect(adviceOnPatterns(['READ??.md', 'cat', '**', '**/x', '*.{a,b}', '.DS_Store'], 'examples/photos')).toEqual([]);
  expect(adviceOnPatterns(['READ.?.md'], 'examples/photos')).toHaveLength(1);
  expect(adviceOnPatterns(['*.jpg'], 's3://bucket/photos')).toEqual([]);
});
