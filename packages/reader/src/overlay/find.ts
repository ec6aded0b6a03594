import path from 'node:path';
import { FileError, OVERLAYS_FOLDER, type Overlay, OverlayError, openSource, parseOverlay } from '@shardtool/format';

/** Where an overlay lies: a name is a file in the dataset's own folder of overlays, anything else a path. */
export function overlayPath(location: string, overlay: string): string {
  return isPath(overlay) ? overlay : path.join(location, OVERLAYS_FOLDER, `${overlay}.jsonl`);
}

/**
 * An overlay with those that it lies on, the lowest first. They lie in one folder. Throws {@link OverlayError} where one is
 * missing, damaged, or is not the one that the overlay above it was made on.
 */
export async function readOverlays(location: string, overlay: string): Promise<Overlay[]> {
  const chain: Overlay[] = [];
  let file = overlayPath(location, overlay);
  for (;;) {
    const found = await readOverlay(file);
    const above = chain[0];
    if (above !== undefined && above.parent!.hash !== found.hash) {
      throw new OverlayError(
        { path: file },
        `${file} has changed since the overlay "${above.name}" was made on it: restore it, or make "${above.name}" anew.`,
      );
    }
    chain.unshift(found);
    if (found.parent === null) return chain;
    file = path.join(path.dirname(file), `${found.parent.name}.jsonl`);
  }
}

async function readOverlay(file: string): Promise<Overlay> {
  const source = await openSource(file).catch((cause: unknown) => {
    if (!(cause instanceof FileError)) throw cause;
    throw new OverlayError(
      { path: file },
      `There is no overlay ${file}: "shardtool overlay list" names those of a dataset.`,
      { cause },
    );
  });
  try {
    const bytes = new Uint8Array(source.size);
    await source.readAt(0, bytes);
    return parseOverlay(bytes, file);
  } finally {
    await source.close();
  }
}

function isPath(overlay: string): boolean {
  return /[\\/]/.test(overlay) || overlay.endsWith('.jsonl');
}
