import { readdirSync } from 'node:fs';
import { extname, join } from 'node:path';
import { entryOf, sidecarPath } from '@shardtool/format';
import type { Duplicates } from '../../dedupe/dedupe.js';
import type { AppendBase } from '../../output/append-base.js';
import { Naming } from '../../plan/naming.js';
import type { BaseFacts } from '../../plan/plan-record.js';
import type { PackPlan } from '../../plan/plan-shards.js';
import { hasObjects, OBJECT_COUNTS } from '../../source/labels/objects.js';
import type { PrepareWork } from '../workers/work.js';
import { nextNumber } from './base-dataset.js';
import { foldersWithoutImages } from './class-folders.js';
import { countOdd, countSkipped, unlabelledIn } from './skipped.js';
import type { Survey } from './survey.js';

/** Facts that the record of a plan has about a whole pack, except its options and bad files. */
export function factsOf(
  { source, options, base }: PrepareWork,
  survey: Survey,
  plan: PackPlan,
  duplicates: Duplicates | null,
) {
  const { digest, files, columnTypes, repeatedFolders, hiddenFolders, topFolders, labels } = survey;
  const skipped = countSkipped(files, plan);
  const unlabelled = unlabelledIn(plan);
  const isByFolder = survey.classes === null && (labels === null || labels.table.cls === null);
  const emptyFolders =
    isByFolder && base === null && plan.classes.length > 0
      ? foldersWithoutImages(files, plan, topFolders, new Naming(options))
      : [];
  return {
    source: source.root,
    sourceDigest: digest,
    classes: plan.classes,
    columns: [...columnTypes].map(([name, type]) => ({ name, type, ...maxObjects(survey, base, name) })),
    samples: plan.order.length,
    files: plan.grouping.files.length,
    sourceBytes: plan.sourceBytes,
    shardBytes: plan.shardBytes,
    skippedFiles: Object.values(skipped).reduce((sum, count) => sum + count, 0),
    skipped,
    skippedFolders: repeatedFolders,
    hiddenFolders,
    ...(emptyFolders.length > 0 && { emptyFolders }),
    ...(unlabelled > 0 && { unlabelled }),
    ...(options.allowMissingFiles && survey.missingRows.length > 0 && { missingFiles: survey.missingRows.length }),
    ...countOdd(labels?.table ?? null),
    duplicates: duplicates?.count ?? 0,
    classConflicts: duplicates?.classConflicts ?? 0,
  };
}

/** For the column that counts objects: its maximum, if that of the growing dataset is known too. */
function maxObjects({ labels }: Survey, base: AppendBase | null, column: string): { readonly most?: number } {
  if (column !== OBJECT_COUNTS || labels === null || !hasObjects(labels.table)) return {};
  const before = base === null ? 0 : base.manifest.columns.find(({ name }) => name === OBJECT_COUNTS)?.most;
  if (before === undefined) return {};
  const counts = labels.table.columns.get(OBJECT_COUNTS) as readonly number[];
  return { most: counts.reduce((max, count) => Math.max(max, count), before) };
}

/** Facts about the dataset that shards are added to. `name` is the prefix of the new shards. */
export function baseFacts({ folder, manifest, quarantined }: AppendBase, name: string): BaseFacts {
  const { extension, shardFolder = '.' } = entryOf(manifest.format);
  // A killed append may have uploaded the index of a shard without the shard itself.
  const index = extname(sidecarPath('index', `0${extension}`));
  const there = readdirSync(join(folder, shardFolder)).filter((file) => [extension, index].includes(extname(file)));
  const firstShard = nextNumber(manifest, name, there);
  return { identity: manifest.identity, quarantined: quarantined.length, firstShard };
}
