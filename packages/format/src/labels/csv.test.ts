import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CsvParser, type CsvRecord, CsvSyntaxError } from './csv.js';

function recordsOf(text: string): CsvRecord[] {
  const parser = new CsvParser();
  const records = text.split('\n').flatMap((line) => parser.add(line) ?? []);
  parser.end();
  return records;
}

const cellsOf = (text: string) => recordsOf(text).map((record) => record.cells);

test('cells are split at commas and lines at LF or CRLF', () => {
  expect(cellsOf('path,class\r\na.jpg,cat\nb.jpg,dog')).toEqual([
    ['path', 'class'],
    ['a.jpg', 'cat'],
    ['b.jpg', 'dog'],
  ]);
});

test('tabs or semicolons separate cells if the header has them and no comma', () => {
  expect(cellsOf('path\tclass\na,b.jpg\t"x\ty;z"\n')).toEqual([
    ['path', 'class'],
    ['a,b.jpg', 'x\ty;z'],
  ]);
  expect(cellsOf('"pa,th";class\r\n"a"";"";b";c,d\r\n')).toEqual([
    ['pa,th', 'class'],
    ['a";";b', 'c,d'],
  ]);
  expect(cellsOf('path,a;b\nx;y,z\n')).toEqual([
    ['path', 'a;b'],
    ['x;y', 'z'],
  ]);
  expect(() => cellsOf('a;b\n"c",d;e\n')).toThrow('not followed by a semicolon');
});

test('a quoted cell keeps commas, line breaks and doubled quotes', () => {
  expect(cellsOf('"a,b","c ""d"" e","f\ng"\n')).toEqual([['a,b', 'c "d" e', 'f\ng']]);
});

test('an empty last cell of a line is kept', () => {
  expect(cellsOf('a,\n,b\n')).toEqual([
    ['a', ''],
    ['', 'b'],
  ]);
});

test('empty lines are skipped, but line numbers count them and the line breaks inside quotes', () => {
  expect(recordsOf('a,"x\ny"\n\nb,c\n').map((record) => record.line)).toEqual([1, 4]);
});

test('an unclosed quote throws an error that names its line', () => {
  expect(() => cellsOf('a,b\n"c,d\n')).toThrow(expect.objectContaining({ line: 2 }));
  expect(() => cellsOf('"a"b,c')).toThrow(CsvSyntaxError);
  expect(() => cellsOf('a,b\nc,d\n"e\n')).toThrow(expect.objectContaining({ line: 3 }));
});

test('text that was written with quotes is read back unchanged', () => {
  const cell = fc.string({ unit: fc.constantFrom('a', ',', '"', '\n', '\r', ' ', 'ß') });
  const record = fc.array(cell, { minLength: 2, maxLength: 4 });
  fc.assert(
    fc.property(fc.array(record), fc.constantFrom('\n', '\r\n'), (records, end) => {
      const quote = (value: string) => `"${value.replaceAll('"', '""')}"`;
      const text = records.map((cells) => cells.map(quote).join(',') + end).join('');
      expect(cellsOf(text)).toEqual(records);
    }),
  );
});

test('a wrong quote before many lines throws an error in linear time', () => {
  const lines = Array.from({ length: 100_000 }, (_, row) => `${row},"x","y"`);
  expect(() => cellsOf(['a,b,c', '0,"x,"y"', ...lines].join('\n'))).toThrow(CsvSyntaxError);
  const doubled = Array.from({ length: 100_000 }, () => 'a ""b""');
  expect(() => cellsOf(['a,b', '0,"x', ...doubled].join('\n'))).toThrow(expect.objectContaining({ line: 2 }));
  const reopened = Array.from({ length: 100_000 }, () => '","');
  expect(() => cellsOf(['a,b', '0,"x', ...reopened].join('\n'))).toThrow(expect.objectContaining({ line: 2 }));
});
