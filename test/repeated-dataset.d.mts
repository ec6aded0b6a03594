export declare function makeRepeatedDataset(
  folder: string,
  options: { readonly source: string; readonly samples: number; readonly shardSamples: number },
): Promise<void>;
