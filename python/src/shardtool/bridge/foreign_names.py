"""Option names of other loaders, with the option of shardtool to set instead."""

from __future__ import annotations

import difflib
from typing import Dict, Iterable, Mapping

#: Options of PyTorch's DataLoader, MosaicML Streaming, DALI, LitData, webdataset and FFCV, and former names of options.
FOREIGN_NAMES: Dict[str, str] = {
    "num_workers": "set workers=8 instead, for 8 decode threads",
    "num_threads": "set workers=8 instead, for 8 decode threads",
    "drop_last": 'last_batch="drop" drops the rows that do not fill a batch',
    "last_batch_policy": 'last_batch="pad", "drop" or "partial"',
    "sampler": "indices=array selects the samples and sets their order",
    "batch_sampler": "indices=array selects the samples and sets their order",
    "order": "indices=array selects the samples and sets their order",
    "prefetch_factor": "prefetch_batches=4 prepares 4 batches in advance",
    "prefetch_queue_depth": "prefetch_batches=4 prepares 4 batches in advance",
    "batches_ahead": "prefetch_batches=4 prepares 4 batches in advance",
    "predownload": "prefetch_batches=4 prepares 4 batches in advance, and cache=folder keeps fetched data on disk",
    "persistent_workers": "workers always persist between epochs, so remove it",
    "collate_fn": 'collate="list" returns the images of a batch as a list',
    "generator": "seed=42 sets the order of samples",
    "shuffle_seed": "seed=42 sets the order of samples",
    "random_shuffle": "shuffle=False keeps the order on disk",
    "shuffle_block_size": "shuffle_buffer_size=10_000 is the number of samples that are shuffled together",
    "shuffle_buffer": "shuffle_buffer_size=10_000 is the number of samples that are shuffled together",
    "shuffle_size": "shuffle_buffer_size=10_000 is the number of samples that are shuffled together",
    "buffer_size": "shuffle_buffer_size=10_000 is the number of samples that are shuffled together",
    "initial_fill": "shuffle_buffer_size=10_000 is the number of samples that are shuffled together",
    "shuffle_algo": 'shuffle_unit="sample", "shard" or "chunk"',
    "num_canonical_nodes": "streams=192 is the number of streams over all ranks",
    "cycle_length": "streams=192 is the number of streams over all ranks",
    "num_shards": "world_size=8 is the number of ranks",
    "num_replicas": "world_size=8 is the number of ranks",
    "shard_id": "rank=0 is the rank of this process",
    "epoch_size": "samples_per_epoch=100_000 is the length of an epoch",
    "epoch_samples": "samples_per_epoch=100_000 is the length of an epoch",
    "ra_reps": "repeats=4 repeats each sample in an epoch",
    "aug_repeats": "repeats=3 repeats each sample in an epoch",
    "num_repeats": "repeats=3 repeats each sample in an epoch",
    "repeated_aug": "repeats=3 repeats each sample in an epoch",
    "num_epochs": "epochs_per_loop=2 makes a loop run for 2 epochs",
    "epochs": "epochs_per_loop=2 makes a loop run for 2 epochs",
    "repeat": "epochs_per_loop=2 makes a loop run for 2 epochs",
    "local": "cache=folder keeps fetched data on disk",
    "cache_dir": "cache=folder keeps fetched data on disk",
    "cache_limit": 'cache_size="200GB" limits the cache',
    "max_cache_size": 'cache_size="200GB" limits the cache',
    "transforms": "transform takes the name of a preset, a list of steps, or a pipeline of torchvision or timm",
    "buckets": "aspect_buckets makes batches of several sizes",
    "steps": "custom_steps runs JavaScript in the workers",
    "filter": 'where="width >= 256" selects samples',
    "handler": 'on_bad="skip" or "replace"',
    "endpoint_url": 'storage={"endpoint_url": "https://minio.example:9000"}, or the variable AWS_ENDPOINT_URL',
    "endpoint": 'storage={"endpoint_url": "https://minio.example:9000"}, or the variable AWS_ENDPOINT_URL',
    "region": 'storage={"region": "eu-west-1"}, or the variable AWS_REGION',
    "unsigned": 'storage={"unsigned": True}',
    "anon": 'storage={"unsigned": True}',
    "requester_pays": 'storage={"requester_pays": True}',
    "storage_options": "storage={...} takes endpoint_url, region, unsigned and requester_pays",
    "device_id": 'device="cuda:0" returns tensors on that GPU',
    "remote": "the first argument is the folder or the location",
    "input_dir": "the first argument is the folder or the location",
    "file_root": "the first argument is the folder or the location",
    "worker_init_fn": "decode workers are threads that run no Python, so remove it",
    "multiprocessing_context": "decode workers are threads that run no Python, so remove it",
    "pad_last_batch": 'last_batch="pad" repeats samples until the last batch is full',
    "subsample": "indices=array selects the samples and sets their order",
    "download_retry": "failed requests are always repeated, so remove it",
    "download_timeout": "requests without an answer are always repeated, so remove it",
    "item_loader": "the format is detected when the dataset is opened, so remove it",
    "serializers": "the format is detected when the dataset is opened, so remove it",
}

#: Options of torchvision's ImageFolder and of other datasets.
FOREIGN_DATASET_NAMES: Dict[str, str] = {
    "root": "the first argument is the folder or the location",
    "train": 'split="train" opens a split',
    "transforms": "transform and target_transform take functions",
    "loader": 'output="pil" returns Pillow images',
    "is_valid_file": "exclude_keys excludes samples",
    "batch_size": "for batches, use shardtool.Loader(location, batch_size=...)",
    "shuffle": "to shuffle, use shardtool.Loader(location, shuffle=True)",
    "where": "only a Loader has where=; dataset[indices] selects samples of a dataset",
    "cache_dir": "only a Loader has a cache: shardtool.Loader(location, cache=folder)",
    "cache": "only a Loader has a cache: shardtool.Loader(location, cache=folder)",
}

#: Options of writers: MosaicML's MDSWriter, webdataset's ShardWriter, FFCV's DatasetWriter, LitData's optimize.
FOREIGN_WRITER_NAMES: Dict[str, str] = {
    "out": "the first argument is the folder or the location to write to",
    "pattern": "the first argument is the folder to write to, and name=... is the prefix of the shard names",
    "size_limit": 'max_shard_bytes="256MiB" limits the size of a shard',
    "max_shard_size": 'max_shard_bytes="256MiB" limits the size of a shard',
    "maxsize": 'max_shard_bytes="256MiB" limits the size of a shard',
    "chunk_bytes": 'max_shard_bytes="256MiB" limits the size of a shard',
    "maxcount": "max_shard_samples=10_000 limits the samples of a shard",
    "chunk_size": "max_shard_samples=10_000 limits the samples of a shard",
    "exist_ok": "overwrite=True replaces the output of an earlier run",
    "mode": "overwrite=True replaces the output of an earlier run",
    "compression": "images are already compressed, so remove it",
    "hashes": "each sample always gets a checksum, so remove it",
    "num_workers": 'to write from several processes, give each of them part="2/16"',
}


def unknown_option(owner: str, name: str, known: Iterable[str], foreign: Mapping[str, str]) -> TypeError:
    """The error for an option that does not exist, with what to use instead."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    if name in foreign:
        hint = f": {foreign[name]}."
    else:
        hint = f"; did you mean {near[0]!r}?" if near else f". The options are {', '.join(names)}."
    return TypeError(f"{owner} has no option {name!r}{hint}")
