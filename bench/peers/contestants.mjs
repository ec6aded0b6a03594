/** The contestants, and what each needs. */

/**
 * id: for --only. script and variant: what runs. environment: one of environments.mjs, none for JavaScript.
 * reads: `photos`, `shards`, `crop-shards` (with crop indexes), `npy-shards` (uncompressed, with as many pixels as FFCV's), or
 * the name of the contestant's own format, which the script writes with --prepare.
 */
export const CONTESTANTS = [
  { id: 'shardtool', script: 'shardtool.mjs', variant: 'always', reads: 'shards' },
  { id: 'shardtool-never', script: 'shardtool.mjs', variant: 'never', reads: 'shards' },
  { id: 'shardtool-crops', script: 'shardtool.mjs', variant: 'crops', reads: 'crop-shards' },
  { id: 'shardtool-float32', script: 'shardtool.mjs', variant: 'float32', reads: 'shards' },
  { id: 'shardtool-npy', script: 'shardtool.mjs', variant: 'npy', reads: 'npy-shards' },
  { id: 'shardtool-python', script: 'shardtool_python.py', environment: 'torch', reads: 'shards' },
  { id: 'limit', script: 'limit.mjs', reads: 'photos' },
  { id: 'pytorch-pillow', script: 'pytorch_pillow.py', environment: 'torch', reads: 'photos' },
  { id: 'pytorch-decode-jpeg', script: 'pytorch_decode_jpeg.py', environment: 'torch', reads: 'photos' },
  { id: 'pytorch-torchcodec', script: 'pytorch_torchcodec.py', environment: 'torch', reads: 'photos' },
  { id: 'webdataset', script: 'webdataset_pillow.py', environment: 'torch', reads: 'shards' },
  { id: 'mosaicml', script: 'mosaicml_streaming.py', environment: 'torch', reads: 'mds' },
  {
    id: 'litdata',
    script: 'litdata_streaming.py',
    variant: 'optimized',
    environment: 'torch',
    reads: 'litdata-chunks',
  },
  { id: 'litdata-raw', script: 'litdata_streaming.py', variant: 'raw', environment: 'torch', reads: 'photos' },
  { id: 'hf-datasets', script: 'hf_datasets.py', environment: 'torch', reads: 'parquet' },
  { id: 'grain', script: 'grain_loader.py', environment: 'torch', reads: 'photos' },
  { id: 'ray-data', script: 'ray_data.py', environment: 'torch', reads: 'photos' },
  { id: 'spdl', script: 'spdl_pipeline.py', environment: 'torch', reads: 'photos' },
  { id: 'datago', script: 'datago_client.py', environment: 'torch', reads: 'photos' },
  { id: 'dali', script: 'dali_cpu.py', environment: 'dali', reads: 'photos' },
  { id: 'ffcv-jpg', script: 'ffcv_loader.py', variant: 'jpg', environment: 'ffcv', reads: 'jpg.beton' },
  { id: 'ffcv-raw', script: 'ffcv_loader.py', variant: 'raw', environment: 'ffcv', reads: 'raw.beton' },
  { id: 'tf-antialias', script: 'tf_data.py', variant: 'antialias', environment: 'tensorflow', reads: 'tfrecord' },
  { id: 'tf-plain', script: 'tf_data.py', variant: 'plain', environment: 'tensorflow', reads: 'tfrecord' },
];

/** Contestants that read images of other sizes than the photos. Megapixels per second are not shown for them. */
export const READS_OTHER_PIXELS = new Set(['npy-shards', 'raw.beton']);

/** The contestants that all are compared with. Rates are shown relative to `reference`, and as shares of `limit`. */
export const COMPARED_WITH = { reference: 'shardtool', limit: 'limit' };
