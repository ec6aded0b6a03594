// Plans a pack of a number of files that do not exist, with names like ImageNet's, and with a limit for the memory of the file
// list. Prints the peak memory of the process.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writePlanRecord } from '#writer/plan/plan-record';
import { planShards } from '#writer/plan/plan-shards';
import { shardPlanOf } from '#writer/plan/shard-plan';
import { SourceFilesBuilder } from '#writer/source/source-files';

const CLASSES = 1000;
const count = Number(process.argv[2]);
const folder = mkdtempSync(join(tmpdir(), 'shardtool-'));
const builder = new SourceFilesBuilder({ memoryBytes: Number(process.argv[3]), folder });
for (let cls = 0; cls < CLASSES; cls++) {
  const name = `n${String(1440764 + cls).padStart(8, '0')}`;
  for (let i = 0; i < count / CLASSES; i++) builder.add(`${name}/${name}_${String(i).padStart(8, '0')}.JPEG`);
}
const files = builder.finish();
const SLICE = 1000;
for (let from = 0; from < count; from += SLICE) {
  files.fill(from, Math.min(count, from + SLICE), () => ({ bytes: 110_000, mtimeMs: 1e12 }));
}
const plan = planShards(files, {
  ...{ fields: [], maxShardBytes: 2 ** 28, maxShardSamples: Number.MAX_SAFE_INTEGER, seed: 0, shuffle: true },
  ...{ classes: null, labels: null },
});
const shards = function* () {
  for (let shard = 0; shard < plan.shards; shard++) yield shardPlanOf(files, plan, null, null, shard);
};
writePlanRecord(join(folder, 'plan'), { options: {}, classes: plan.classes, columns: [] }, shards());
rmSync(folder, { recursive: true });
console.log(process.resourceUsage().maxRSS * 1024);
