/** An image at any scale, down to single pixels, with its objects and masks. */
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
  /** Number of screen pixels per pixel of the image. Null fits the image into the window. */
  readonly scale: number | null;
}

export function Figure({ detail, masks, hasObjects, scale }: FigureProps) {
  const pane = useRef<HTMLElement>(null);
  const [room, setRoom] = useState({ width: 1, height: 1 });
  useLayoutEffect(() => {
    const element = pane.current!;
    // The scroll bars of the element itself must not change the size that fits.
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
        <Picture isFirst url={pictures.full(detail.index)} alt={`Image of ${shown(detail.key)}`} />
        {[...masks].map((field) => (
          <div class="mask" key={field}>
            <Picture isFirst url={pictures.mask(detail.index, field)} alt={`Mask ${shown(field)}`} />
          </div>
        ))}
        {hasObjects && detail.objects.length > 0 && (
          <Objects objects={detail.objects} width={width} height={height} factor={factor} />
        )}
      </div>
    </section>
  );
}
