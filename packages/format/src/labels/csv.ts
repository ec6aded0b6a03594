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

/** A record with more cells that contain line breaks is refused, so that a wrong quote does not take quadratic time. */
const MOST_TRIES = 1000;

type Separator = ',' | '\t' | ';';

/**
 * Makes records from the lines of a CSV file as in RFC 4180: quoted cells may contain separators, line breaks and doubled
 * quotes; lines end with CRLF or LF. Cells are separated by tabs or semicolons if the first line has those and no comma.
 * Empty lines are skipped. All calls throw {@link CsvSyntaxError} with the line.
 */
export class CsvParser {
  #separator: Separator | null = null;
  /** Lines read. */
  #lines = 0;
  /** The lines of a record with a quoted cell that is not closed yet. */
  #open: string[] = [];
  /** How often the open record was parsed. */
  #tries = 0;

  /** Takes the next line, without its line feed. Returns the record that it ends; null if it ends none. */
  add(line: string): CsvRecord | null {
    this.#lines++;
    if (this.#open.length > 0) return this.#continue(line);
    if (line === '' || line === '\r') return null;
    this.#separator ??= separatorOf(line);
    // Most lines have no quotes.
    if (!line.includes('"')) return { line: this.#lines, cells: withoutReturn(line).split(this.#separator) };
    this.#tries = 0;
    return this.#parse([line]);
  }

  /** Ends the file. */
  end(): void {
    if (this.#open.length > 0) throw this.#notClosed();
  }

  #continue(line: string): CsvRecord | null {
    this.#open.push(line);
    // Only a quote that is not doubled can close the cell.
    return line.replaceAll('""', '').includes('"') ? this.#parse(this.#open) : null;
  }

  #parse(lines: string[]): CsvRecord | null {
    const first = this.#lines - lines.length + 1;
    const { cells, isClosed } = cellsOf(withoutReturn(lines.join('\n')), this.#separator!, first);
    this.#open = isClosed ? [] : lines;
    if (isClosed) return { line: first, cells };
    if (++this.#tries > MOST_TRIES) throw this.#notClosed();
    return null;
  }

  #notClosed(): CsvSyntaxError {
    return new CsvSyntaxError(this.#lines - this.#open.length + 1, 'a quote is not closed');
  }
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}

/** The separator between the cells of the first line, ignoring quoted text. */
function separatorOf(line: string): Separator {
  const header = line.replace(/"[^"]*"/g, '');
  return ([',', '\t', ';'] as const).find((separator) => header.includes(separator)) ?? ',';
}

/** The cells of a record. `isClosed` is false if its last cell has no closing quote. */
function cellsOf(text: string, separator: Separator, line: number): { cells: string[]; isClosed: boolean } {
  const cells: string[] = [];
  for (let position = 0; position <= text.length; position++) {
    if (text[position] === '"') {
      const close = closingQuote(text, position + 1);
      if (close === -1) return { cells, isClosed: false };
      const after = text[close + 1];
      if (after !== undefined && after !== separator) {
        const name = { ',': 'comma', '\t': 'tab', ';': 'semicolon' }[separator];
        throw new CsvSyntaxError(line, `a closing quote is not followed by a ${name} or the end of the line`);
      }
      cells.push(text.slice(position + 1, close).replaceAll('""', '"'));
      position = close + 1;
    } else {
      const next = text.indexOf(separator, position);
      const end = next === -1 ? text.length : next;
      cells.push(text.slice(position, end));
      position = end;
    }
  }
  return { cells, isClosed: true };
}

function closingQuote(text: string, from: number): number {
  let close = text.indexOf('"', from);
  while (close !== -1 && text[close + 1] === '"') close = text.indexOf('"', close + 2);
  return close;
}
