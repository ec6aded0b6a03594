/** An image at any scale, down to its pixels, with what lies on it. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { SampleDetail } from '../../src/view/protocol.js';
import { pictures } from '../api.js';
import { Objects } from '../picture/objects.js';
import { Picture } from '../picture/picture.js';
import { shown } from '../text.js';

interface FigureProps {
  readonly detail: SampleDetail;
  readonly masks: ReadonlySet<string>;
  readonly hasObjects: boolean;
  /** Screen pixels to one of the image; null fits it into the window. */
  readonly scale: number | null;
}

export function Figure({ detail, masks, hasObjects, scale }: FigureProps) {
  const pane = useRef<HTMLElement>(null);
  const [room, setRoom] = useState({ width: 1, height: 1 });
  useLayoutEffect(() => {
    const element = pane.current!;
    // Its own scroll bars must not change what fits.
    const look = () => setRoom({ width: element.offsetWidth - 2, height: element.offsetHeight - 2 });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    look();
    return () => observer.disconnect();
  }, []);
  const isStored = detail.objects.length > 0 || detail.masks.length > 0;
  const isTurned = !isStored && detail.orientation >= 5;
  const stored = { width: detail.width || 256, height: detail.height || 256 };
  const { width, height } = isTurned ? { width: stored.height, height: stored.width } : stored;
  const factor = scale ?? Math.min(room.width / width, room.height / height, 16);
  return (
    <section class="pane" ref={pane} tabIndex={0} aria-label="Image">
      <div
        class={`layers${isStored ? ' stored' : ''}${factor >= 2 ? ' pixels' : ''}`}
        style={{ width: `${width * factor}px`, height: `${height * factor}px` }}
      >
        <Picture isFirst url={pictures.full(detail.number)} alt={`Image of ${shown(detail.key)}`} />
        {[...masks].map((field) => (
          <div class="mask" key={field}>
            <Picture isFirst url={pictures.mask(detail.number, field)} alt={`Mask ${shown(field)}`} />
          </div>
        ))}
        {hasObjects && detail.objects.length > 0 && (
          <Objects objects={detail.objects} width={width} height={height} factor={factor} />
        )}
      </div>
    </section>
  );
}
