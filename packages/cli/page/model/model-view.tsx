/** The view "What the model sees": 16 transformed samples for a transform, seed and epoch. */
import { useCallback, useEffect, useState } from 'preact/hooks';
import type { Query } from '../../src/view/protocol.js';
import { api, pictures } from '../api.js';
import type { ModelState } from '../link/state.js';
import { Objects } from '../picture/objects.js';
import { Picture } from '../picture/picture.js';
import { shown } from '../text.js';
import { useFetched } from '../use-fetched.js';

interface ModelViewProps {
  readonly query: Query;
  /** Position in the list of the first of these samples. */
  readonly at: number;
  readonly model: ModelState;
  readonly onModel: (model: ModelState) => void;
}

const SAMPLES = 16;
const PAUSE_MS = 400;
/** Approximate size of a picture's frame, in pixels. */
const FRAME_PIXELS = 160;
/** The first text of the editor: a preset as a list of steps. */
const EXAMPLE = `[
  { "name": "randomResizedCrop", "size": 224 },
  { "name": "randomHorizontalFlip" },
  { "name": "colorJitter", "brightness": 0.3, "hue": 0.1 }
]`;

export function ModelView({ query, at, model, onModel }: ModelViewProps) {
  const [text, setText] = useState(model.transform);
  const [fault, setFault] = useState<string | null>(null);
  const [hasObjects, setHasObjects] = useState(true);
  const [hasMask, setHasMask] = useState(true);
  useEffect(() => setText(model.transform), [model.transform]);
  useEffect(() => {
    if (text === model.transform) return undefined;
    const pause = setTimeout(() => onModel({ ...model, transform: text }), PAUSE_MS);
    return () => clearTimeout(pause);
  }, [text, model, onModel]);
  const { got } = useFetched(JSON.stringify([query, at]), (signal) => api.rows(query, at, SAMPLES, signal));
  const { seed, epoch } = model;
  return (
    <div class="model">
      <div class="model-steps">
        <label for="transform">Transform: a name such as train224, or a list of steps</label>
        <textarea
          id="transform"
          rows={12}
          spellcheck={false}
          value={text}
          aria-invalid={fault !== null}
          aria-describedby="transform-fault"
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <p id="transform-fault" class="fault-text" role="status">
          {fault !== null && shown(fault)}
        </p>
        <div class="model-inputs">
          <Whole name="Seed" given={seed} onChange={(given) => onModel({ ...model, seed: given })} />
          <Whole name="Epoch" given={epoch} onChange={(given) => onModel({ ...model, epoch: given })} />
          <button type="button" onClick={() => setText(EXAMPLE)}>
            Example
          </button>
          <label>
            <input type="checkbox" checked={hasObjects} onChange={() => setHasObjects(!hasObjects)} /> objects
          </label>
          <label>
            <input type="checkbox" checked={hasMask} onChange={() => setHasMask(!hasMask)} /> mask
          </label>
        </div>
        <p class="soft">
          The pixels that a loader with this transform and seed gives in this epoch, before values are normalised.
        </p>
      </div>
      <ul class="model-samples" aria-label="Transformed samples">
        {got?.rows.map(({ index, key, cls }, i) => (
          <li key={index}>
            <span class="frame">
              <ModelPicture
                url={pictures.model(index, model)}
                alt={`${shown(key)}, transformed`}
                onFault={i === 0 ? setFault : null}
              />
              <ModelLayers index={index} model={model} hasObjects={hasObjects} hasMask={hasMask} />
            </span>
            <span class="name">
              <bdi>{shown(key)}</bdi>
            </span>
            <span class="about">
              <bdi>{cls === null ? 'no class' : shown(cls)}</bdi>
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

interface ModelPictureProps {
  readonly url: string;
  readonly alt: string;
  readonly onFault: ((fault: string | null) => void) | null;
}

/** A wrong transform is wrong for all pictures. The first picture shows the error below the list of steps. */
function ModelPicture({ url, alt, onFault }: ModelPictureProps) {
  const tell = useCallback((fault: string | null) => onFault?.(fault), [onFault]);
  return <Picture url={url} alt={alt} onFault={tell} />;
}

interface ModelLayersProps {
  readonly index: number;
  readonly model: ModelState;
  readonly hasObjects: boolean;
  readonly hasMask: boolean;
}

/**
 * The objects of the sample and its first mask, transformed as its pixels were. Errors of the transform are shown by
 * the picture instead.
 */
function ModelLayers({ index, model, hasObjects, hasMask }: ModelLayersProps) {
  const name = JSON.stringify([index, model]);
  const { got } = useFetched(name, async (signal) => ({ name, ...(await api.modelObjects(index, model, signal)) }));
  if (got === null || got.name !== name) return null;
  const { objects, masks, width, height } = got;
  const [field] = masks;
  return (
    <>
      {hasMask && field !== undefined && (
        <div class="mask">
          <Picture url={pictures.modelMask(index, field, model)} alt={`Mask ${shown(field)}, transformed`} />
        </div>
      )}
      {hasObjects && objects.length > 0 && (
        <div class="drawn" style={{ maxWidth: `${width}px`, maxHeight: `${height}px` }}>
          <Objects objects={objects} width={width} height={height} factor={FRAME_PIXELS / Math.max(width, height)} />
        </div>
      )}
    </>
  );
}

interface WholeProps {
  readonly name: string;
  readonly given: number;
  readonly onChange: (value: number) => void;
}

function Whole({ name, given, onChange }: WholeProps) {
  return (
    <label>
      {name}{' '}
      <input
        type="number"
        min={0}
        step={1}
        value={given}
        onInput={({ currentTarget: { value } }) => /^\d{1,9}$/.test(value) && onChange(Number(value))}
      />
    </label>
  );
}
