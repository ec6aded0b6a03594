/** Builds tar archives block by block, valid and invalid ones, without any of the tested code. */

export interface CraftedHeader {
  name?: string | Uint8Array;
  /** The size field as stored in the block, if it is not `size` in octal. */
  sizeField?: string | Uint8Array;
  size?: number;
  type?: string;
  /** `ustar\0` and version 00, GNU's `ustar  \0`, or nothing as in v7. */
  magic?: 'ustar' | 'gnu' | 'v7';
  prefix?: string | Uint8Array;
  linkName?: string;
  /** The checksum field as stored in the block. */
  checksumField?: string;
  signedChecksum?: boolean;
}

const MAGIC = { ustar: 'ustar\x0000', gnu: 'ustar  \0', v7: '' };

export function header(fields: CraftedHeader): Buffer {
  const block = Buffer.alloc(512);
  const put = (at: number, value: string | Uint8Array) => block.set(Buffer.from(value as string), at);
  put(0, fields.name ?? 'a.jpg');
  put(100, '0000644\0');
  put(124, fields.sizeField ?? `${(fields.size ?? 0).toString(8).padStart(11, '0')}\0`);
  put(136, '00000000000\0');
  put(148, '        ');
  put(156, fields.type ?? '0');
  put(157, fields.linkName ?? '');
  put(257, MAGIC[fields.magic ?? 'ustar']);
  put(345, fields.prefix ?? '');
  let sum = 0;
  for (const byte of block) sum += fields.signedChecksum && byte > 127 ? byte - 256 : byte;
  put(148, fields.checksumField ?? `${sum.toString(8).padStart(6, '0')}\0 `);
  return block;
}

/** A header followed by a payload of its size, unless the fields say otherwise. */
export function entry(fields: CraftedHeader, payload: string | Uint8Array = ''): Buffer {
  const bytes = Buffer.from(payload as string);
  const padding = Buffer.alloc((512 - (bytes.length % 512)) % 512);
  return Buffer.concat([header({ size: bytes.length, ...fields }), bytes, padding]);
}

/** A record of a pax header, with its correct length. */
export function record(keyword: string, value: string): string {
  const rest = ` ${keyword}=${value}\n`;
  const bytes = Buffer.byteLength(rest);
  let length = bytes;
  while (length !== bytes + String(length).length) length++;
  return String(length) + rest;
}

export function pax(records: string, type: 'x' | 'g' = 'x'): Buffer {
  return entry({ name: 'PaxHeaders/a', type }, records);
}

export function gnuLong(text: string, type: 'L' | 'K' = 'L'): Buffer {
  return entry({ name: '././@LongLink', type, magic: 'gnu' }, `${text}\0`);
}

export const END = Buffer.alloc(1024);

export function archive(...pieces: Uint8Array[]): Buffer {
  return Buffer.concat([...pieces, END]);
}
