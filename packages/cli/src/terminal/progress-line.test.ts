import { expect, test } from 'vitest';
import { padded, widthOf } from './columns.js';
import { type Progress, progressLine } from './progress-line.js';

const progress: Progress = {
  stage: 'pack',
  done: 50,
  total: 100,
  parts: ['1,234,567 of 1,281,167 files', '12 MB/s', '3:21 left'],
};

test('in a narrow terminal the bar shrinks first, then the time left is dropped, then the rate, then the bar', () => {
  expect(progressLine(progress, 100)).toBe(
    'pack [============            ] 1,234,567 of 1,281,167 files, 12 MB/s, 3:21 left',
  );
  expect(progressLine(progress, 64)).toBe('pack [====    ] 1,234,567 of 1,281,167 files, 12 MB/s, 3:21 left');
  expect(progressLine(progress, 60)).toBe('pack [========       ] 1,234,567 of 1,281,167 files, 12 MB/s');
  expect(progressLine(progress, 50)).toBe('pack [=======       ] 1,234,567 of 1,281,167 files');
  expect(progressLine(progress, 40)).toBe('pack 1,234,567 of 1,281,167 files');
  expect(progressLine(progress, 20)).toBe('pack 1,234,567 of 1,');
});

test('no line is longer than the terminal, whatever its text', () => {
  const wide = { ...progress, parts: ['写真 三毛猫 of 画像ファイル', '12 MB/s'] };
  for (let columns = 1; columns < 120; columns++) {
    expect(widthOf(progressLine(progress, columns))).toBeLessThanOrEqual(columns);
    expect(widthOf(progressLine(wide, columns))).toBeLessThanOrEqual(columns);
  }
});

test('an unknown total has an empty bar', () => {
  expect(progressLine({ ...progress, total: 0, parts: ['12 files'] }, 30)).toBe('pack [              ] 12 files');
});

test('a wide character takes two columns, and a combining one none', () => {
  expect(padded('猫', 4)).toBe('猫  ');
  expect(padded('e\u0301', 3)).toBe('e\u0301  ');
});
