/** For whoever prints: of `@shardtool/storage`, without loading what is on disk. */
export { countOf, formatCount, sentence, visible } from '@shardtool/storage/visible';
