/** Images that are encoded again have the pixels that a loader would have delivered, upright. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { newFolder, samplesOf, tree } from './pack-workbench.js';

const FOLDER = 'test/fixtures/pillow';
const expected = JSON.parse(readFileSync(`${FOLDER}/expected.json`, 'utf8')) as Readonly<
  Record<string, { readonly upright: { readonly width: number; readonly height: number; readonly sha256: string } }>
>;

test.each(['png', 'npy'] as const)(
  'images that become %s have the same upright pixels as with Pillow, for any source of orientation and colours',
  async (imageFormat) => {
    const files = Object.keys(expected);
    // Some have the same stem.
    const named = files.map((file, i) => [`${i}${path.extname(file)}`, readFileSync(path.join(FOLDER, file))] as const);
    const output = newFolder();
    await pack(tree(Object.fromEntries(named)), output, { imageFormat });
    expect((await samplesOf(output)).map(({ orientation }) => orientation)).toEqual(files.map(() => 1));
    await using dataset = await openDataset(output);
    const loader = dataset.loader({ workers: 1, collate: 'list', applyExifOrientation: true });
    for await (const { keys, list } of loader) {
      for (const [i, { width, height, pixels }] of list!.entries()) {
        const file = files[Number(keys[i])]!;
        const sha256 = createHash('sha256').update(pixels).digest('hex');
        expect({ file, width, height, sha256 }).toEqual({ file, ...expected[file]!.upright });
      }
    }
    await loader.close();
  },
);
