/** The expression that filters samples, and its error, if any. */
import { useEffect, useState } from 'preact/hooks';
import type { ColumnInfo } from '../../src/view/protocol.js';
import { RequestRejectedError } from '../api.js';
import { shown } from '../text.js';

interface WhereBoxProps {
  readonly where: string;
  readonly columns: readonly ColumnInfo[];
  readonly fault: Error | null;
  readonly onChange: (where: string) => void;
}

/** Milliseconds without typing after which the expression is applied. */
const PAUSE_MS = 350;

export function WhereBox({ where, columns, fault, onChange }: WhereBoxProps) {
  const [text, setText] = useState(where);
  useEffect(() => setText(where), [where]);
  useEffect(() => {
    if (text === where) return undefined;
    const pause = setTimeout(() => onChange(text), PAUSE_MS);
    return () => clearTimeout(pause);
  }, [text, where, onChange]);
  const column = fault instanceof RequestRejectedError ? fault.column : null;
  return (
    <form
      class="where"
      onSubmit={(event) => {
        event.preventDefault();
        onChange(text);
      }}
    >
      <label for="where">Where</label>
      <input
        id="where"
        type="text"
        value={text}
        placeholder="width >= 256 and class = &quot;cat&quot;"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        aria-invalid={fault !== null}
        aria-describedby="where-fault"
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <p id="where-fault" class="fault-line" role="status">
        {fault !== null && (
          <>
            {column !== null && (
              <code class="pointed" aria-hidden="true">
                {shown(where.slice(0, column - 1))}
                <mark>{shown(where.slice(column - 1)) || ' '}</mark>
              </code>
            )}
            {shown(fault.message)}
          </>
        )}
      </p>
      <details>
        <summary>Columns and words</summary>
        <p>
          {columns.map(({ name }) => (
            <code key={name}>{shown(name)}</code>
          ))}
        </p>
        <p>
          <code>= != &lt; &lt;= &gt; &gt;= in and or not null</code>; text in quotes. <code>kind</code> and{' '}
          <code>aspect</code> are for the histograms below alone.
        </p>
      </details>
    </form>
  );
}
