/** Folders of tiny files, for measurements in which the number of files matters and not their size. */
import fs from 'node:fs';
import path from 'node:path';

/** Bytes of each tiny file. */
export const TINY_BYTES = 200;
const TINY_FOLDERS = 100;

/** Writes tiny JPEG files that differ: the header of an example, padded with a comment that has the file's number. */
export function makeTinyFiles(folder, files) {
  const header = Buffer.from('ffd8ffc0001108000100010301220002110003110000ffd9', 'hex');
  for (let number = 0; number < files; number++) {
    const inside = path.join(folder, `class_${String(number % TINY_FOLDERS).padStart(3, '0')}`);
    if (number < TINY_FOLDERS) fs.mkdirSync(inside, { recursive: true });
    const content = Buffer.alloc(TINY_BYTES);
    header.copy(content);
    content.writeUInt32LE(number, TINY_BYTES - 4);
    fs.writeFileSync(path.join(inside, `image_${String(number).padStart(8, '0')}.jpg`), content);
  }
}
