import { escapeControls } from '@shardtool/base/text';
import sharp from 'sharp';

export const LABEL_HEIGHT = 20;
const FONT = 'sans-serif 13px';
/** A character that no font has. Its picture is that of a missing character. */
const MISSING = '\u{f8fe}';

/** A drawn text: one byte of coverage per pixel; 0 is the background. */
export interface Drawn {
  readonly width: number;
  readonly height: number;
  readonly ink: Uint8Array;
}

/** Draws labels, and caches the results. */
export class Labels {
  readonly #drawn = new Map<string, Promise<Drawn>>();
  readonly #known = new Map<string, Promise<boolean>>();

  /** Whether the system has any font. */
  hasFonts(): Promise<boolean> {
    return this.#isKnown('A');
  }

  /**
   * Draws the text in at most this number of pixels. Control characters, and characters that no font of the system has,
   * are escaped.
   */
  async draw(text: string, width: number): Promise<Drawn> {
    const key = `${width} ${text}`;
    let drawn = this.#drawn.get(key);
    if (drawn === undefined) {
      drawn = this.#escaped(text).then((shown) => render(shown, width));
      this.#drawn.set(key, drawn);
    }
    return drawn;
  }

  async #escaped(text: string): Promise<string> {
    const parts = [...escapeControls(text)].map(async (character) => {
      if (/^[\x20-\x7e]$/.test(character) || (await this.#isKnown(character))) return character;
      return `\\u{${character.codePointAt(0)!.toString(16)}}`;
    });
    return (await Promise.all(parts)).join('');
  }

  #isKnown(character: string): Promise<boolean> {
    let known = this.#known.get(character);
    if (known === undefined) {
      known = Promise.all([render(character), render(MISSING)]).then(([one, missing]) => !hasFrameOf(one, missing));
      this.#known.set(character, known);
    }
    return known;
  }
}

/** Missing characters are boxes of one size with their number in it. */
function hasFrameOf(one: Drawn, box: Drawn): boolean {
  if (one.width !== box.width || one.height !== box.height) return false;
  const edge = ({ ink, width, height }: Drawn) => [...ink.subarray(0, width), ...ink.subarray((height - 1) * width)];
  return String(edge(one)) === String(edge(box));
}

/** Draws text and cuts it at this number of pixels. The text is Pango markup, in which three characters must be escaped. */
async function render(text: string, most = Number.POSITIVE_INFINITY): Promise<Drawn> {
  const markup = text.replace(/[&<>]/g, (character) => `&#${character.charCodeAt(0)};`);
  // White space alone has no picture.
  if (text.trim() === '') return { width: 0, height: 0, ink: new Uint8Array() };
  const image = sharp({ text: { text: markup, font: FONT, dpi: 72 } }).extractChannel(0);
  const { data, info } = await image.raw().toBuffer({ resolveWithObject: true });
  const [width, height] = [Math.min(info.width, most), Math.min(info.height, LABEL_HEIGHT)];
  const ink = new Uint8Array(width * height);
  for (let y = 0; y < height; y++) ink.set(data.subarray(y * info.width, y * info.width + width), y * width);
  return { width, height, ink };
}
