/** One record of a CSV file, and the line on which it begins (from 1). */
export interface CsvRecord {
  readonly line: number;
  readonly cells: readonly string[];
}

/** A quote is opened and never closed, or closed in the middle of a cell. */
export class CsvSyntaxError extends Error {
  readonly line: number;

  constructor(line: number, message: string) {
    super(message);
    this.line = line;
  }
}

/**
 * Reads CSV as RFC 4180 has it: cells in quotes may hold commas, line breaks and doubled quotes; lines end with CRLF or
 * LF. Empty lines are left out. Throws {@link CsvSyntaxError} with the line.
 */
export function* parseCsv(text: string): Generator<CsvRecord> {
  let position = 0;
  let line = 1;
  while (position < text.length) {
    const first = line;
    const cells: string[] = [];
    let ended = false;
    while (!ended) {
      const cell = text[position] === '"' ? quotedCell(text, position, first) : plainCell(text, position);
      cells.push(cell.value);
      line += cell.lineBreaks;
      position = cell.end;
      ended = text[position] !== ',';
      position += text.startsWith('\r\n', position) ? 2 : 1;
    }
    line++;
    if (cells.length > 1 || cells[0] !== '') yield { line: first, cells };
  }
}

interface Cell {
  readonly value: string;
  /** Position of the comma or line break behind the cell, or the end of the text. */
  readonly end: number;
  readonly lineBreaks: number;
}

function plainCell(text: string, start: number): Cell {
  CELL_END.lastIndex = start;
  const end = CELL_END.exec(text)?.index ?? text.length;
  return { value: text.slice(start, end), end, lineBreaks: 0 };
}

const CELL_END = /,|\r?\n/g;

function quotedCell(text: string, start: number, line: number): Cell {
  let close = text.indexOf('"', start + 1);
  while (close !== -1 && text[close + 1] === '"') close = text.indexOf('"', close + 2);
  if (close === -1) throw new CsvSyntaxError(line, 'a quote is opened and never closed');
  const after = text.slice(close + 1, close + 3);
  if (after !== '' && !/^(,|\n|\r\n)/.test(after)) {
    throw new CsvSyntaxError(line, 'a closing quote is not followed by a comma or the end of the line');
  }
  const quoted = text.slice(start + 1, close);
  return {
    value: quoted.replaceAll('""', '"'),
    end: close + 1,
    lineBreaks: quoted.split('\n').length - 1,
  };
}
