import { type HeaderTrouble, type ImageHeader, u16le } from './header.js';

/** GIF89a specification, section 18, "Logical Screen Descriptor". */
export function readGifHeader(bytes: Uint8Array): ImageHeader | HeaderTrouble {
  if (bytes.length < 10) return 'cut';
  const width = u16le(bytes, 6);
  const height = u16le(bytes, 8);
  if (width === 0 || height === 0) return 'no-size';
  return { kind: 'gif', width, height, orientation: 1 };
}
