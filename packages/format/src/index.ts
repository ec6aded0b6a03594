export {
  type CropIndexFile,
  type CropIndexTable,
  CropIndexWriter,
  checkedCropIndex,
  cropIndexOf,
  openCropIndex,
} from './crop-index/crop-index-file.js';
export { sortedByValue } from './dataset/class-order.js';
export { type ClassUnion, renumberClasses, uniteClasses } from './dataset/class-union.js';
export { findShards, indexPathOf, meantLocations, PACK_NOTE_FILE } from './dataset/find-shards.js';
export { type FoundDataset, type FoundShard, manifestShards, splitsInside } from './dataset/found-shards.js';
export {
  createManifest,
  hasChecksum,
  hasSameValues,
  identityOf,
  isManifestAsWritten,
  MANIFEST_FILE,
  type Manifest,
  type ManifestColumn,
  type ManifestShard,
  manifestText,
  parseManifest,
  readManifest,
  writeManifest,
} from './dataset/manifest.js';
export {
  findSidecars,
  ownerOf,
  packedSidecarPath,
  placeSidecar,
  removeAbandonedSidecars,
  sideFolder,
} from './dataset/sidecar-files.js';
export {
  DERIVED_SIDECARS,
  type DerivedSidecar,
  earlierSidecarPath,
  hiddenFolder,
  isOfLayout,
  SIDECAR_NAMES,
  SIDECARS,
  type SidecarName,
  sidecarOfShard,
  sidecarPath,
  sidecarPaths,
} from './dataset/sidecars.js';
export {
  hasNoFolder,
  isVersionFile,
  keptVersions,
  parseRecordName,
  readVersion,
  recordName,
  VERSION_LOG,
  VERSIONS_FOLDER,
  type VersionRecord,
  versionFile,
} from './dataset/versions.js';
export { type BmpLayout, bmpLayout } from './image/bmp.js';
export { firstGifFrame, type GifFrame } from './image/gif.js';
export {
  fieldOfKind,
  type ImageKind,
  imageFields,
  imageKindOf,
  isImageExtension,
  isImageField,
  isNamedAsImage,
  kindOfField,
  mediaTypeOf,
} from './image/kinds.js';
export { afterSpace, digitOf, isSpace, type PnmLayout, pnmLayout } from './image/pnm.js';
export { type ImageHeader, MAX_PIXELS, type Precision, probeImage } from './image/probe.js';
export { stripMetadata } from './image/strip-metadata.js';
export { type TiffCoding, tiffCoding } from './image/tiff.js';
export {
  contentOf,
  type InspectionColumn,
  type InspectionFile,
  readInspection,
  writeInspection,
} from './inspection/inspection-file.js';
export { ColumnKind } from './labels/column-kind.js';
export { CsvParser, type CsvRecord, CsvSyntaxError } from './labels/csv.js';
export { type LabelRow, type LabelRows, readLabelRows } from './labels/label-rows.js';
export { type LabelTable, noRows, readLabelTable } from './labels/label-table.js';
export { readParquetLabelRows, readParquetLabels, readParquetRows } from './labels/parquet-labels.js';
export { decompressedByCommand } from './layouts/bytes/by-command.js';
export { codecOfSource, compressionOf } from './layouts/bytes/compressed.js';
export { becameShorter } from './layouts/bytes/file-window.js';
export { PieceSource, type Pieces } from './layouts/bytes/piece-source.js';
export { planRuns } from './layouts/bytes/read-runs.js';
export { decompressed, fetched, plainName, type WholeCodec } from './layouts/bytes/unpacked.js';
export { labelOfColumn } from './layouts/columns/column-names.js';
export {
  type ColumnContent,
  EXTENSION_COLUMN,
  KEY_COLUMN,
  type SampleValues,
  type Table,
  type TableColumn,
  type TableNames,
} from './layouts/columns/table.js';
export { FilesSource, type ListedSamples, listSamples } from './layouts/folder/index.js';
export {
  type ChosenColumns,
  type FieldInPieces,
  type FieldPosition,
  isImageAlone,
  type LinkChoice,
  type OnSkipped,
  type OutputLayout,
  type PartedShard,
  type PartReader,
  type ReadChoice,
  type SamplePosition,
  type ShardLayout,
  type ShardPart,
  type ShardWriter,
  type TableLayout,
  type WrittenLayout,
} from './layouts/layout.js';
export { LmdbDatabase, lmdb, lmdbImages } from './layouts/lmdb/index.js';
export { msgpack } from './layouts/msgpack/index.js';
export {
  entryOf,
  isTableLayout,
  LAYOUTS,
  type LayoutEntry,
  type LayoutName,
  layoutNames,
  layoutOf,
  layoutOfName,
  layoutWith,
  OUTPUT_LAYOUTS,
  type OutputLayoutName,
  openShard,
  openToConvert,
  shardNameOf,
  stemOfShard,
  type TableLayoutName,
  WRITTEN_LAYOUTS,
  type WrittenLayoutName,
  writtenLayoutOf,
} from './layouts/registry.js';
export { canonicalSplit, chooseSplit, folderAt, shardsOfSplit, splitsOf } from './layouts/split-name.js';
export { type StreamedFile, scanEntries, streamFiles, tar } from './layouts/tar/index.js';
export {
  describeNpyRow,
  encodeNpyHeader,
  encodeNpyImage,
  isBytes,
  isNpy,
  isSameNpyRow,
  NPY_FIELD,
  type NpyArray,
  type NpyHeader,
  type NpyImage,
  type NpyRow,
  NpyRowCopier,
  npyRowBytes,
  npyRowOf,
  npyRowValues,
  npyValuesOffset,
  OtherNpyRow,
  readNpy,
  readNpyHeader,
  readNpyImage,
  type StackedArray,
} from './npy/index.js';
export { checkDaliName, daliIndex } from './other-indexes/dali.js';
export { checkWidsName, checkWidsNames, type WidsShard, widsIndex } from './other-indexes/wids.js';
export { OverlayError } from './overlay/overlay-error.js';
export {
  type ChangedEntry,
  type ClassChange,
  OVERLAYS_FOLDER,
  type Overlay,
  type OverlayClass,
  OverlayEncoder,
  type OverlayEntry,
  type OverlayHeader,
  overlayLine,
  parseOverlay,
  type RowPlace,
  type SplitRule,
} from './overlay/overlay-file.js';
export { PackedChanges, type ShardChanges } from './overlay/packed-changes.js';
export { isSet, rowBits } from './overlay/row-bits.js';
export { jsonText, parseJson } from './sample/exact-json.js';
export { fieldPayload } from './sample/field-payload.js';
export { fieldType } from './sample/field-type.js';
export { nameTable } from './sample/name-table.js';
export type { FieldSize } from './sample/sample-check.js';
export { MAX_SAMPLE_BYTES, SampleCheck, sampleTooLarge } from './sample/sample-check.js';
export { packedName, readsBack, type SampleName, splitEntryName, whyUnsafe } from './sample/sample-name.js';
export { type Misfit, parseShape, shownValue } from './shape.js';
export {
  buildShardIndex,
  classNumber,
  headerOf,
  imageFieldOf,
  indexOfPositions,
  walkShardIndex,
  walkShardToCopy,
} from './shard-index/build-index.js';
export { imageColumn } from './shard-index/image-column.js';
export { addTo, IndexRows, type SampleRow } from './shard-index/index-rows.js';
export { decodeLoadedIndex, loadShardIndex } from './shard-index/loaded-index.js';
export {
  asSalvaged,
  COLUMN_TYPES,
  type ColumnType,
  type ColumnValue,
  checkLabelColumns,
  columnTypeOf,
  decodeShardIndex,
  encodeShardIndex,
  type FieldColumns,
  type IndexPart,
  type LoadedIndex,
  type PartOfIndex,
  readShardIndex,
  type SalvagedField,
  type SalvagedIndex,
  type ShardIndex,
  type SummedColumns,
  salvageShardIndex,
  writeShardIndex,
  wrongSamples,
} from './shard-index/shard-index.js';
export { INDEX_PARTS, rowsOfIndex, unknownColumns } from './shard-index/whole-index.js';
export { openSource, type Source } from './source.js';
