export { asFileError, countBraces, didYouMean, makeFolder, withSentences } from '@shardtool/storage';
export * from './checksum.js';
export {
  type CropIndexFile,
  type CropIndexTable,
  CropIndexWriter,
  checkedCropIndex,
  cropIndexOf,
  openCropIndex,
} from './crop-index/crop-index-file.js';
export * from './dataset/beside.js';
export * from './dataset/find-shards.js';
export * from './dataset/manifest.js';
export * from './durable.js';
export * from './errors.js';
export {
  fieldOfKind,
  type ImageKind,
  imageFields,
  isImageExtension,
  isImageField,
  kindOfField,
} from './image/kinds.js';
export * from './image/probe.js';
export { stripMetadata } from './image/strip-metadata.js';
export { FilesSource, type ListedSamples, listSamples } from './layouts/folder/index.js';
export * from './layouts/layout.js';
export * from './layouts/lmdb/index.js';
export * from './layouts/msgpack/index.js';
export { PieceSource, type Pieces } from './layouts/piece-source.js';
export * from './layouts/registry.js';
export * from './layouts/tar/index.js';
export * from './npy/index.js';
export { daliIndex } from './other-indexes/dali.js';
export { checkWidsNames, type WidsShard, widsIndex } from './other-indexes/wids.js';
export {
  encodeOverlay,
  OVERLAYS_FOLDER,
  type Overlay,
  type OverlayClass,
  type OverlayEntry,
  OverlayError,
  type OverlayHeader,
  parseOverlay,
  type SplitRule,
} from './overlay/overlay-file.js';
export * from './philox.js';
export * from './sample/field-type.js';
export { nameTable } from './sample/name-table.js';
export { fieldPayload } from './sample/sample-codec.js';
export * from './sample/sample-name.js';
export * from './shard-index/build-index.js';
export { imageColumn } from './shard-index/image-column.js';
export { addTo, IndexRows, type SampleRow } from './shard-index/index-rows.js';
export * from './shard-index/shard-index.js';
export { openSource, type Source } from './source.js';
export { Bell } from './threads/bell.js';
export { type ErrorRecord, recordError, reviveError } from './threads/error-record.js';
export { WorkerThread, type WorkerThreadOptions } from './threads/worker-thread.js';
export * from './visible.js';
