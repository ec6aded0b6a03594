import type { Dataset, LoaderOptions, LoaderState } from '@shardtool/reader';

export interface Found {
  readonly samples: {
    index: number;
    key: string;
    label: number;
    class: string | null;
    fields: object;
    columns: object;
  }[];
  readonly orders: { options: object; order: number[] }[];
  readonly states: { state: LoaderState; rest: number[] }[];
}

export function found(dataset: Dataset, loading?: LoaderOptions): Promise<Found>;
