/** Buttons that mark one sample. */
import { useState } from 'preact/hooks';
import type { Mark } from '../../src/view/protocol.js';
import { shown } from '../text.js';

interface MarkButtonsProps {
  readonly mark: Mark | null;
  readonly classes: readonly string[];
  readonly onMark: (mark: Mark | null) => void;
}

export function MarkButtons({ mark, classes, onMark }: MarkButtonsProps) {
  const [name, setName] = useState(mark?.kind === 'class' ? mark.name : '');
  const toggle = (given: Mark) => onMark(mark?.kind === given.kind ? null : given);
  return (
    <div class="mark-buttons">
      <button type="button" aria-pressed={mark?.kind === 'wrong'} onClick={() => toggle({ kind: 'wrong' })}>
        Wrong <kbd>w</kbd>
      </button>
      <button type="button" aria-pressed={mark?.kind === 'exclude'} onClick={() => toggle({ kind: 'exclude' })}>
        Leave out <kbd>x</kbd>
      </button>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onMark(name === '' ? null : { kind: 'class', name });
        }}
      >
        <input
          type="text"
          list="classes"
          aria-label="Other class"
          placeholder="other class"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <datalist id="classes">
          {classes.slice(0, 2000).map((one) => (
            <option key={one} value={one}>
              {shown(one)}
            </option>
          ))}
        </datalist>
        <button type="submit" aria-pressed={mark?.kind === 'class'}>
          Set class
        </button>
      </form>
    </div>
  );
}
