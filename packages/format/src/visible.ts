/** For whoever prints, and reads what is typed: of `@shardtool/storage`, without loading what is on disk. */
export { countOf, formatCount, parseSize, sentence, visible } from '@shardtool/storage/visible';
