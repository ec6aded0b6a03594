export { ShardtoolError } from '@shardtool/base';
export type { ColumnType, ColumnValue } from '@shardtool/format';
export { imageOf, type StoredSampleImage } from '../dataset/image-of.js';
export type { Sample } from '../dataset/samples.js';
export { type GetOptions, SampleNotFoundError } from '../dataset/stored-dataset.js';
export { WhereError } from '../selection/where-tokens.js';
export { openDataset, type WebOpenOptions } from './open.js';
export { WebDataset, type WebImage, type WebIndex, type WebRow, type WebRowsOptions } from './web-dataset.js';
