import { inLanes } from '@shardtool/base';
import { headerOf, type IndexPart, imageColumn, type ShardIndex, unknownColumns } from '@shardtool/format';
import { withInspection } from '../dataset/inspection-columns.js';
import type { ShardFiles } from '../dataset/shard-files.js';
import type { StoredDataset } from '../dataset/stored-dataset.js';
import type { SelectableDataset, SelectionRequest } from './selection.js';
import { isUnread, namesInWhere } from './where.js';

/** What nobody knows of an image before its header was read. */
const SIZES: ReadonlySet<string> = new Set(['width', 'height', 'orientation']);
/** What a selection looks at but for places. */
const LABELS = ['key', 'source', 'cls', 'columns', 'columnTypes'] as const satisfies readonly IndexPart[];
/** Nearly every header is in so many bytes; where it is not, all of the image is read. */
const HEAD_BYTES = 64 << 10;
/** Headers that are read at once. */
const HEADS_AT_ONCE = 16;

/**
 * A dataset as a selection reads it. Where the request names sizes of images that no index has, their headers are read, which
 * `shardtool index` saves; where it asks for labels alone, and a shard has them apart, nothing else of it is read.
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
      const loaded = names.has('source')
        ? await files.wholeIndex(shard)
        : { source: [], ...(await files.index(shard)) };
      const index = await withInspection(loaded, file, names);
      return wantsSizes && isUnread(index) ? withSizes(index, shard, files) : index;
    },
  };
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
  const rows = Array.from({ length: samples }, (_, row) => row).filter((row) => offset[row]! >= 0 && bytes[row]! > 0);
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
