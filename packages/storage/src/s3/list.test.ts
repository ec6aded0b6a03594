import { expect, test } from 'vitest';
import { parseListPage } from './list.js';

const page = (inside: string) => `<?xml version="1.0"?>\n<ListBucketResult xmlns="x">${inside}</ListBucketResult>\n`;
const file = (key: string, size = '5') =>
  `<Contents><Key>${key}</Key><Size>${size}</Size><ETag>&quot;e&quot;</ETag></Contents>`;

test('a page has files, folders and the token of the next page', () => {
  const more = '<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>';
  const folders = '<CommonPrefixes><Prefix>in/b/</Prefix></CommonPrefixes>';
  expect(parseListPage(page(`${file('in/a')}${folders}${more}`), 'in/')).toEqual({
    entries: [{ name: 'a', size: 5, version: '"e"', modifiedMs: undefined }],
    folders: ['b/'],
    next: 't',
  });
  expect(parseListPage(page('<IsTruncated>false</IsTruncated>'), '').next).toBeNull();
});

test('a page that should have a successor but no token is distinguished from the last page', () => {
  expect(parseListPage(page('<IsTruncated>true</IsTruncated>'), '').next).toBeUndefined();
  const empty = '<IsTruncated>true</IsTruncated><NextContinuationToken></NextContinuationToken>';
  expect(parseListPage(page(empty), '').next).toBeUndefined();
});

test('a truncated response, or one that is not a list, is rejected and requested again', () => {
  const whole = page(`${file('a')}${file('b')}<IsTruncated>false</IsTruncated>`);
  for (let bytes = 0; bytes < whole.trimEnd().length; bytes++) {
    expect(() => parseListPage(whole.slice(0, bytes), '')).toThrow('not a whole list');
  }
  expect(() => parseListPage('<html><body>Sign in</body></html>', '')).toThrow('not a whole list');
  expect(() => parseListPage(page(file('a', '')), '')).toThrow('without a size');
  expect(() => parseListPage(page(file('other/a')), 'in/')).toThrow('not asked for');
  expect(() => parseListPage(page(`<EncodingType>url</EncodingType>${file('100%')}`), '')).toThrow('not URL-encoded');
});
