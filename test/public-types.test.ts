import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { compile, userProject } from './guides/user-project.js';

/** Exports the results of all functions and methods without naming a type, like a library on top of shardtool. */
const PROGRAM = `
import * as s from 'shardtool';
import * as web from 'shardtool/web';

export const dataset = await s.openDataset('a');
export const mixture = await s.openMixture([{ dataset: 'a' }, { dataset: 'b' }]);
export const sample = await dataset.get('a');
export const samples = dataset.samples();
export const loader = dataset.loader({ batchSize: 2, transform: 'train224' });
export const lists = dataset.loader({ collate: 'list' });
export const raw = dataset.loader({ transform: 'raw' });
export const ofFields = dataset.loader({ image: false });
export const arrays = (await ofFields[Symbol.asyncIterator]().next()).value?.arrays;
export const device = dataset.loader({ device: 'cuda:0' });
export const mixed = mixture.loader();
export const batches = loader[Symbol.asyncIterator]();
export const batch = (await batches.next()).value;
export const state = loader.state();
export const info = await loader.info();
export const report = loader.report();
export const decoder = await s.SampleDecoder.open(dataset);
export const decoded = await decoder.get(0);
export const stats = await s.getStats(dataset);
export const plan = await s.planDataset(dataset);
export const ofDataset = { stats: await dataset.stats(), plan: await dataset.plan(), inspect: await dataset.inspect() };
export const verifiedDataset = await dataset.verify({ onFault: (fault) => console.log(fault.reason) });
export const source: s.PackSource = { folder: 'a', list: ['b.jpg'] };
export const pair: readonly s.PairedFolder[] = [{ folder: 'masks', field: 'seg.png' }];
export const planOfMixture = s.planMixture;
export const planOfBuckets = s.planAspectBuckets;
export const keys = await s.findDuplicateKeys(dataset);
export const objects = await s.countAnnotations(dataset, { boxes: { field: 'json' } });
export const inspected = await s.inspect('a');
export const overlays = await s.listOverlays('a');
export const calls = { ...s };
export const ofPage = await web.openDataset('https://example.org/shards');
export const inPage = { image: await ofPage.image(0), rows: ofPage.rows(), row: await ofPage.row(0), where: await ofPage.where('a = 1'), sample: await ofPage.get('a') };
export const packed = await s.pack('a', 'b');
export const converted = await s.convert('a', 'b');
export const verified = await s.verify('a');
export const repaired = await s.repair('a');
export const indexed = await s.indexShards(['a']);
export const committed = await s.commitParts('a');
export const part: s.PartOption = { index: 0, of: 2 };
export const openPart: s.WriterPartOption = { index: 0 };
export const storage: s.StorageOptions = {};
export const writer = new s.Writer('a');
export const written = await writer.close();
export const options = {
  loader: {} as Parameters<typeof dataset.loader>[0],
  pack: {} as NonNullable<Parameters<typeof s.pack>[2]>,
};
`;

test('a library can export everything that shardtool returns with declarations, if only shardtool can be imported', () => {
  const folder = userProject();
  // As installed by pnpm and Yarn: dependencies of shardtool are not found by name.
  rmSync(path.join(folder, 'node_modules/@shardtool'));
  const settings = path.join(folder, 'tsconfig.json');
  const { compilerOptions, include } = JSON.parse(readFileSync(settings, 'utf8'));
  writeFileSync(settings, JSON.stringify({ compilerOptions: { ...compilerOptions, declaration: true }, include }));
  writeFileSync(path.join(folder, 'library.ts'), PROGRAM);
  expect(compile(folder)).toBe('');
});

/** Memory that a batch or sample owns is accepted where shared memory is not. */
const OWN_MEMORY = `
import { imageOf, openDataset } from 'shardtool';

declare function own(bytes: Uint8Array<ArrayBuffer> | undefined): void;
const dataset = await openDataset('a');
const sample = await dataset.get('a');
own(sample.fields.txt);
own(imageOf(sample)?.bytes);
new Response(sample.fields.txt, { headers: { 'content-type': imageOf(sample)?.type ?? '' } });
for await (const { fields } of dataset.samples()) own(fields.txt);
for await (const { images } of dataset.loader({ transform: 'train224' })) own(images);
for await (const { encoded } of dataset.loader({ transform: 'raw', reuse: false })) own(encoded[0]);
for await (const { list } of dataset.loader({ collate: 'list', reuse: true })) own(list[0]?.pixels);
// @ts-expect-error: shared memory.
for await (const { images } of dataset.loader({ transform: 'train224', reuse: true })) own(images);
// @ts-expect-error: shared memory.
for await (const { encoded } of dataset.loader({ transform: 'raw', reuse: 'manual' })) own(encoded[0]);
`;

test('types distinguish memory of the caller from shared memory', () => {
  const folder = userProject();
  writeFileSync(path.join(folder, 'program.ts'), OWN_MEMORY);
  expect(compile(folder)).toBe('');
});
