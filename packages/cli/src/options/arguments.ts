import type { ArgumentSpec } from '../command.js';

/** The dataset that a command reads. */
export const DATASET_ARGUMENT = {
  type: 'string',
  demandOption: true,
  describe: 'Folder of shards, one shard, or a URL such as s3://bucket/shards',
} as const satisfies ArgumentSpec;

/** The dataset that a command adds an overlay to. */
export const BASE_ARGUMENT = {
  type: 'string',
  demandOption: true,
  describe: 'Folder of shards, or a URL such as s3://bucket/shards',
} as const satisfies ArgumentSpec;

/** The folder or bucket that a command writes shards to. */
export const OUTPUT_ARGUMENT = {
  type: 'string',
  demandOption: true,
  describe: 'Folder for the shards, or a URL such as s3://bucket/shards',
} as const satisfies ArgumentSpec;
