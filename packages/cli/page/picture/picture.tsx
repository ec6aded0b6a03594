/** A picture that is fetched while it is visible, or the sentence that says why it cannot be shown. */
import { useEffect, useState } from 'preact/hooks';
import { shown } from '../text.js';
import { wantPicture } from './picture-queue.js';

interface PictureProps {
  readonly url: string;
  readonly alt: string;
  /** True if the picture has priority over all that wait. */
  readonly isFirst?: boolean;
  readonly onFault?: (message: string | null) => void;
}

type Got = { readonly url: string } & ({ readonly src: string } | { readonly fault: string });

export function Picture({ url, alt, isFirst = false, onFault }: PictureProps) {
  const [got, setGot] = useState<Got | null>(null);
  useEffect(() => {
    let src: string | null = null;
    const stop = wantPicture(
      url,
      (blob) => {
        src = URL.createObjectURL(blob);
        setGot({ url, src });
        onFault?.(null);
      },
      (error) => {
        setGot({ url, fault: shown(error.message) });
        onFault?.(error.message);
      },
      isFirst,
    );
    return () => {
      stop();
      if (src === null) return;
      URL.revokeObjectURL(src);
      // The same picture may be requested again, with another address.
      setGot(null);
    };
  }, [url, isFirst, onFault]);
  if (got === null || got.url !== url) return <span class="waiting" />;
  if ('fault' in got) {
    return (
      <span class="fault" title={got.fault}>
        {got.fault}
      </span>
    );
  }
  return <img src={got.src} alt={alt} decoding="async" />;
}
