import { inLanes, range } from '@shardtool/base';
import {
  headerOf,
  type IndexPart,
  imageColumn,
  type LoadedIndex,
  type ShardIndex,
  unknownColumns,
} from '@shardtool/format';
import { withInspection } from '../dataset/inspection-columns.js';
import type { ShardFiles } from '../dataset/shards/shard-files.js';
import type { StoredDataset } from '../dataset/stored-dataset.js';
import type { SelectableDataset, SelectionRequest } from './selection.js';
import { isUnread, namesInWhere } from './where.js';

/** Facts about an image that are unknown until its header is read. */
const SIZES: ReadonlySet<string> = new Set(['width', 'height', 'orientation']);
/** Parts of an index that a selection reads, except positions. */
const LABELS = ['key', 'source', 'cls', 'columns', 'columnTypes'] as const satisfies readonly IndexPart[];
/** Bytes that are read to find a header. If the header is longer, the whole image is read. */
const HEAD_BYTES = 64 << 10;
/** Number of headers that are read concurrently. */
const HEADS_AT_ONCE = 16;

/**
 * Returns a dataset as a selection reads it. If the request names image sizes that no index has, the headers of the images
 * are read; `shardtool index` avoids that. If only labels are needed and a shard stores them separately, only they are read.
 */
export function selectableOf(
  { shards, classes, files }: Pick<StoredDataset, 'shards' | 'classes' | 'files'>,
  { where }: Pick<SelectionRequest, 'where'>,
): SelectableDataset {
  const names = where === undefined ? new Set<string>() : namesInWhere(where);
  const wantsSizes = [...SIZES].some((name) => names.has(name));
  return {
    counts: Float64Array.from(shards, ({ samples }) => samples),
    classNames: classes,
    async indexOf(shard) {
      const file = shards[shard]!;
      if (file.hasLabelsApart && !wantsSizes && !names.has('bytes')) {
        return { ...NOTHING_ELSE, ...(await file.loadParts(LABELS)) };
      }
      const loaded = names.has('source') ? await files.wholeIndex(shard) : withoutPaths(await files.index(shard));
      const index = await withInspection(loaded, file, names);
      return wantsSizes && isUnread(index) ? withSizes(index, shard, files) : index;
    },
  };
}

/** An index whose paths are not used. A copy of an index would decode all of its columns. */
function withoutPaths(index: LoadedIndex): ShardIndex {
  return 'source' in index ? (index as ShardIndex) : { ...index, source: [] };
}

const NOTHING_ELSE = {
  offset: new Float64Array(0),
  bytes: new Float64Array(0),
  fields: new Map(),
  ...unknownColumns(0),
};

async function withSizes(index: ShardIndex, shard: number, files: ShardFiles): Promise<ShardIndex> {
  const { offset, bytes } = imageColumn(index);
  const { samples } = index;
  const [width, height, orientation] = [
    new Int32Array(samples),
    new Int32Array(samples),
    new Uint8Array(samples).fill(1),
  ];
  const headerAt = async (row: number, length: number) => {
    const head = new Uint8Array(length);
    await files.read(shard, offset[row]!, head);
    return headerOf(head);
  };
  const rows = range(samples).filter((row) => offset[row]! >= 0 && bytes[row]! > 0);
  await inLanes(rows, HEADS_AT_ONCE, async (row) => {
    const length = bytes[row]!;
    const header =
      (await headerAt(row, Math.min(HEAD_BYTES, length))) ?? (length > HEAD_BYTES ? await headerAt(row, length) : null);
    if (header === null) return;
    width[row] = header.width;
    height[row] = header.height;
    orientation[row] = header.orientation;
  });
  return { ...index, width, height, orientation };
}
