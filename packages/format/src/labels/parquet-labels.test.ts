import { expect, test } from 'vitest';
import { readParquetLabels } from './parquet-labels.js';

test('labels of a Parquet file are read from all its row groups, even if some are empty', async () => {
  const file = 'test/fixtures/parquet/empty/1.parquet';
  const { by, id, columns } = await readParquetLabels(file, ['path', 'image_path']);
  expect(by).toBe('image_path');
  expect(id).toEqual(Array.from({ length: 24 }, (_, row) => `${row}.jpg`));
  expect([...columns.keys()].sort()).toEqual(['boxes', 'caption', 'label', 'seen']);
  expect(columns.get('label')).toHaveLength(24);
});
