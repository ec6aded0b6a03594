/** One record of a CSV file, and the line on which it begins (from 1). */
export interface CsvRecord {
  readonly line: number;
  readonly cells: readonly string[];
}

/** A quote that is opened and never closed, or closed in the middle of a cell. */
export class CsvSyntaxError extends Error {
  readonly line: number;

  constructor(line: number, message: string) {
    super(message);
    this.line = line;
  }
}

/**
 * Parses CSV as in RFC 4180: quoted cells may contain commas, line breaks and doubled quotes; lines end with CRLF or
 * LF. Cells are separated by tabs or semicolons if the first line has those and no comma. Empty lines are skipped.
 * Throws {@link CsvSyntaxError} with the line.
 */
export function* parseCsv(text: string): Generator<CsvRecord> {
  const separator = separatorOf(text);
  let position = 0;
  let line = 1;
  while (position < text.length) {
    const first = line;
    const cells: string[] = [];
    let ended = false;
    while (!ended) {
      const cell =
        text[position] === '"' ? quotedCell(text, position, separator, first) : plainCell(text, position, separator);
      cells.push(cell.value);
      line += cell.lineBreaks;
      position = cell.end;
      ended = text[position] !== separator;
      position += text.startsWith('\r\n', position) ? 2 : 1;
    }
    line++;
    if (cells.length > 1 || cells[0] !== '') yield { line: first, cells };
  }
}

type Separator = ',' | '\t' | ';';

/** The separator between the cells of the first line, ignoring quoted text. */
function separatorOf(text: string): Separator {
  const header = (/[^\r\n]+/.exec(text)?.[0] ?? '').replace(/"[^"]*"/g, '');
  return ([',', '\t', ';'] as const).find((separator) => header.includes(separator)) ?? ',';
}

interface Cell {
  readonly value: string;
  /** Offset of the separator or line break after the cell, or the end of the text. */
  readonly end: number;
  readonly lineBreaks: number;
}

function plainCell(text: string, start: number, separator: Separator): Cell {
  const cellEnd = CELL_END[separator];
  cellEnd.lastIndex = start;
  const end = cellEnd.exec(text)?.index ?? text.length;
  return { value: text.slice(start, end), end, lineBreaks: 0 };
}

const CELL_END = { ',': /,|\r?\n/g, '\t': /\t|\r?\n/g, ';': /;|\r?\n/g };

function quotedCell(text: string, start: number, separator: Separator, line: number): Cell {
  let close = text.indexOf('"', start + 1);
  while (close !== -1 && text[close + 1] === '"') close = text.indexOf('"', close + 2);
  if (close === -1) throw new CsvSyntaxError(line, 'a quote is not closed');
  const after = text.slice(close + 1, close + 3);
  if (after !== '' && after[0] !== separator && !/^\r?\n/.test(after)) {
    const name = { ',': 'comma', '\t': 'tab', ';': 'semicolon' }[separator];
    throw new CsvSyntaxError(line, `a closing quote is not followed by a ${name} or the end of the line`);
  }
  const quoted = text.slice(start + 1, close);
  return {
    value: quoted.replaceAll('""', '"'),
    end: close + 1,
    lineBreaks: quoted.split('\n').length - 1,
  };
}
