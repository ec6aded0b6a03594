import { didYouMean, FileNotFoundError, option, sentence } from '@shardtool/base';
import { OVERLAYS_FOLDER, type Overlay, OverlayError, parseOverlay } from '@shardtool/format';
import {
  joinLocation,
  readAgainIf,
  readWhole,
  type StorageOptions,
  shownLocation,
  splitLocation,
} from '@shardtool/storage';
import { overlayNames } from './names.js';

/** Name of the overlay that `shardtool split` writes by default. */
export const SPLIT_OVERLAY = 'split';

/**
 * Returns the path of an overlay. A name is a file in the dataset's own folder of overlays. Anything else is a
 * location.
 */
export function overlayPath(location: string, overlay: string): string {
  return isPath(overlay) ? overlay : joinLocation(location, `${OVERLAYS_FOLDER}/${overlay}.jsonl`);
}

/**
 * Reads an overlay and the overlays that it builds on, the lowest first. They are in one folder. Throws {@link
 * OverlayError} if one is missing, damaged, or not the one that the overlay above it was made for.
 */
export async function readOverlays(location: string, overlay: string, storage?: StorageOptions): Promise<Overlay[]> {
  const chain: Overlay[] = [];
  let file = overlayPath(location, overlay);
  for (;;) {
    const found = await readAgainIf([OverlayError], file, storage, () => readOverlay(file, location, storage));
    const above = chain[0];
    if (above !== undefined && above.parent!.hash !== found.hash) {
      const shown = shownLocation(file);
      throw new OverlayError(
        { path: shown },
        `${shown} has changed since the overlay "${above.name}" was created on top of it: restore it, or create "${above.name}" again.`,
      );
    }
    chain.unshift(found);
    if (found.parent === null) return chain;
    file = joinLocation(splitLocation(file).folder, `${found.parent.name}.jsonl`);
  }
}

async function readOverlay(file: string, location: string, storage: StorageOptions | undefined): Promise<Overlay> {
  const shown = shownLocation(file);
  const bytes = await readWhole(file, storage).catch(async (cause: unknown) => {
    if (!(cause instanceof FileNotFoundError)) throw cause;
    throw new OverlayError(
      { path: shown },
      shown.endsWith('/split.jsonl')
        ? sentence`The dataset has no splits: ${shown} does not exist. Create it with "shardtool split", or choose another overlay with ${option('overlay')}.`
        : `There is no overlay ${shown}${await similarName(file, location, storage)} "shardtool overlay ls" lists the overlays of a dataset.`,
      { cause },
    );
  });
  return parseOverlay(bytes, shown);
}

/** The most similar name of an overlay of the dataset, as a question; a full stop if no name is similar. */
async function similarName(file: string, location: string, storage: StorageOptions | undefined): Promise<string> {
  // An error about the list would hide the one about the overlay.
  const names = await overlayNames(location, storage).catch(() => []);
  const given = splitLocation(file).name.replace(/\.jsonl$/, '');
  return didYouMean(given, names) || '.';
}

function isPath(overlay: string): boolean {
  return /[\\/]/.test(overlay) || overlay.endsWith('.jsonl');
}
