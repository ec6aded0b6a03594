/** One sample in large: its pixels, its objects and masks, and all its data. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Mark, SampleDetail } from '../../src/view/protocol.js';
import { api, CAN } from '../api.js';
import { MarkButtons } from '../marks/mark-buttons.js';
import { bytes, count, shown, value } from '../text.js';
import { useFetched } from '../use-fetched.js';
import { Figure } from './figure.js';

interface ZoomProps {
  readonly index: number;
  readonly classes: readonly string[];
  readonly mark: Mark | null;
  /** Null if there is no next sample. */
  readonly onNext: (() => void) | null;
  readonly onBefore: (() => void) | null;
  readonly onMark: (mark: Mark | null) => void;
  readonly onClose: () => void;
}

const SCALES = [null, 1, 2, 4, 8, 16] as const;

export function Zoom({ index, classes, mark, onNext, onBefore, onMark, onClose }: ZoomProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [scale, setScale] = useState<number | null>(null);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const { got, fault } = useFetched(String(index), (signal) => api.sample(index, signal));
  useEffect(() => dialog.current!.showModal(), []);
  const toggle = (name: string) =>
    setHidden((now) => new Set(now.has(name) ? [...now].filter((one) => one !== name) : [...now, name]));
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = (by: number) =>
      setScale(SCALES[Math.max(0, Math.min(SCALES.length - 1, SCALES.indexOf(scale as null) + by))]!);
    const ways: Record<string, (() => void) | null> = {
      n: onNext,
      p: onBefore,
      w: () => onMark(mark?.kind === 'wrong' ? null : { kind: 'wrong' }),
      x: () => onMark(mark?.kind === 'exclude' ? null : { kind: 'exclude' }),
      u: () => onMark(null),
      '+': () => step(1),
      '-': () => step(-1),
    };
    if (!Object.hasOwn(ways, event.key)) return;
    event.preventDefault();
    ways[event.key]?.();
  };
  const detail = got?.index === index ? got : null;
  const masks = new Set(detail?.masks.filter((name, i) => hidden.has(name) === i > 0));
  return (
    <dialog ref={dialog} class="zoom" aria-label="Sample" onClose={onClose} onKeyDown={onKeyDown}>
      <div class="zoom-head">
        <h2>
          <bdi>{shown(detail?.key ?? '…')}</bdi>
        </h2>
        <button type="button" disabled={onBefore === null} onClick={() => onBefore?.()}>
          Before <kbd>p</kbd>
        </button>
        <button type="button" disabled={onNext === null} onClick={() => onNext?.()}>
          Next <kbd>n</kbd>
        </button>
        <button type="button" onClick={() => dialog.current!.close()}>
          Close
        </button>
      </div>
      <div class="zoom-bar" role="toolbar" aria-label="Scale and layers">
        {SCALES.map((one) => (
          <button type="button" key={one} aria-pressed={scale === one} onClick={() => setScale(one)}>
            {one === null ? 'fit' : `${one}×`}
          </button>
        ))}
        {detail?.masks.map((name) => (
          <label key={name}>
            <input type="checkbox" checked={masks.has(name)} onChange={() => toggle(name)} /> {shown(name)}
          </label>
        ))}
        {detail !== null && detail.objects.length > 0 && (
          <label>
            <input type="checkbox" checked={!hidden.has('')} onChange={() => toggle('')} />
            {` ${count(detail.objects.length)} objects`}
          </label>
        )}
      </div>
      {detail === null ? (
        <div class="pane">{fault !== null && <p class="fault-text">{shown(fault.message)}</p>}</div>
      ) : (
        <Figure detail={detail} masks={masks} hasObjects={!hidden.has('')} scale={scale} />
      )}
      <section class="facts" tabIndex={0} aria-label="What is known of it">
        {CAN.mark && <MarkButtons key={index} mark={mark} classes={classes} onMark={onMark} />}
        {detail !== null && <Facts detail={detail} />}
      </section>
    </dialog>
  );
}

function Facts({ detail }: { readonly detail: SampleDetail }) {
  const { fields, columns, exif, faults } = detail;
  const turned = detail.orientation > 1 ? `, EXIF orientation ${detail.orientation}` : '';
  const isStored = detail.orientation > 1 && (detail.objects.length > 0 || detail.masks.length > 0);
  return (
    <>
      {faults.map((fault) => (
        <p class="fault-text" key={fault}>
          {shown(fault)}
        </p>
      ))}
      {isStored && <p class="soft">Shown as stored, not turned: so masks and boxes lie on it.</p>}
      <dl>
        <Fact name="class" text={detail.cls === null ? 'none' : shown(detail.cls)} />
        <Fact name="size" text={`${count(detail.width)} × ${count(detail.height)} pixels${turned}`} />
        <Fact name="index" text={count(detail.index)} />
        <Fact
          name="place"
          text={`${shown(detail.shard)}, byte ${count(detail.offset)}, ${bytes(detail.bytes)} with headers`}
        />
        {detail.source !== '' && <Fact name="packed from" text={shown(detail.source)} />}
        {columns.map(([name, given]) => (
          <Fact key={name} name={shown(name)} text={value(name, given)} />
        ))}
      </dl>
      <h3>Fields</h3>
      {fields.map(({ name, bytes: size, offset, crc32, isRight, text }) => (
        <div class="field" key={name}>
          <p>
            <strong>
              <bdi>{shown(name)}</bdi>
            </strong>
            {` ${bytes(size)} at byte ${count(offset)}`}
            {crc32 === null ? ', no checksum' : `, crc32 ${crc32} ${isRight ? 'is right' : 'is wrong'}`}
          </p>
          {text !== null && <pre>{linesOf(text)}</pre>}
        </div>
      ))}
      {exif.length > 0 && (
        <>
          <h3>EXIF</h3>
          <dl>
            {exif.map(([tag, given]) => (
              <Fact key={tag} name={shown(tag)} text={shown(given)} />
            ))}
          </dl>
        </>
      )}
    </>
  );
}

/** Escapes the text of a field. Line breaks are kept. */
function linesOf(text: string): string {
  return text.split('\n').map(shown).join('\n');
}

function Fact({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <>
      <dt>
        <bdi>{name}</bdi>
      </dt>
      <dd>
        <bdi>{text}</bdi>
      </dd>
    </>
  );
}
