import type { ColumnType, ColumnValue } from '@shardtool/format';

interface SparseColumn {
  readonly type: ColumnType;
  readonly of: (number: number) => ColumnValue;
}

export function makeSparseDataset(
  folder: string,
  options: {
    readonly samples: number;
    readonly shardSamples: number;
    readonly classes?: number;
    readonly sizeOf?: (number: number) => readonly [width: number, height: number];
    readonly columns?: Readonly<Record<string, SparseColumn>>;
  },
): Promise<void>;

export function keyOf(number: number): string;
