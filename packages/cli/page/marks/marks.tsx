/** The list of marks, and the form that saves them as an overlay. */
import { useState } from 'preact/hooks';
import type { DatasetInfo, MarkList } from '../../src/view/protocol.js';
import { count, shown } from '../text.js';
import { markText } from './mark-text.js';

interface MarksProps {
  readonly info: DatasetInfo;
  readonly list: MarkList;
  readonly onOpen: (index: number) => void;
  readonly onTakeAway: (index: number) => void;
  readonly onSave: (name: string) => Promise<void>;
}

/** Number of marks that are listed. The others are only counted. */
const LISTED = 50;

export function Marks({ info, list: { marks, saved }, onOpen, onTakeAway, onSave }: MarksProps) {
  const [name, setName] = useState(info.overlayName);
  const [fault, setFault] = useState<string | null>(null);
  const save = () => {
    setFault(null);
    onSave(name).then(
      () => setName(nextName(name)),
      (error: Error) => setFault(error.message),
    );
  };
  return (
    <section class="marks" aria-label="Marks">
      <h2>{`Marks${marks.length === 0 ? '' : ` · ${count(marks.length)}`}`}</h2>
      {marks.length === 0 && (
        <p class="soft">
          In the grid: <kbd>w</kbd> wrong, <kbd>x</kbd> exclude, <kbd>u</kbd> no mark. To change a class, use the large
          view.
        </p>
      )}
      <ul>
        {marks.slice(0, LISTED).map(({ index, key, mark }) => (
          <li key={index}>
            <button type="button" class="link" onClick={() => onOpen(index)}>
              <bdi>{shown(key)}</bdi>
            </button>
            <span class="soft">
              <bdi>{markText(mark)}</bdi>
            </span>
            <button type="button" aria-label={`take the mark off ${shown(key)}`} onClick={() => onTakeAway(index)}>
              ×
            </button>
          </li>
        ))}
      </ul>
      {marks.length > LISTED && <p class="soft">{`and ${count(marks.length - LISTED)} more`}</p>}
      {marks.length > 0 && (
        <form
          class="save"
          onSubmit={(event) => {
            event.preventDefault();
            save();
          }}
        >
          <label for="overlay">Save as the overlay</label>
          <input id="overlay" type="text" value={name} onInput={(event) => setName(event.currentTarget.value)} />
          <button type="submit">Save</button>
        </form>
      )}
      <p class="fault-text" role="status">
        {fault !== null && shown(fault)}
      </p>
      {saved !== null && (
        <p class="soft">
          {`Saved: ${count(saved.excluded)} left out, ${count(saved.relabelled)} of another class, ${count(saved.wrong)} wrong. `}
          Every command takes <code>--overlay {shown(saved.overlay)}</code>.
        </p>
      )}
    </section>
  );
}

/** Returns the name with the next number: `marks-2` after `marks-1`. */
function nextName(name: string): string {
  const [, stem, number] = /^(.*?)-?(\d*)$/.exec(name)!;
  return `${stem}-${Number(number || '1') + 1}`;
}
