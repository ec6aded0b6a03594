"""Measures what MosaicML Streaming fetches in three epochs with a `cache_limit` of half of the data, as shares of the data:
256 shards of 64 samples of 52 KB, as in `run.mjs cache`. Needs mosaicml-streaming and torch.

    python bench/storage/mosaicml_cache.py [SHUFFLE_BLOCK_SIZE]

Without a block size, the library's default is used. One such block holds all of these samples.
"""

import os
import sys
import tempfile

import numpy as np
import streaming.base.storage.download as download
from streaming import MDSWriter, StreamingDataset
from streaming.base.util import clean_stale_shared_memory
from torch.utils.data import DataLoader

SHARDS, SAMPLES, BYTES = 256, 64, 52_000

fetched = 0
fetch = download.LocalDownloader._download_file_impl


def counted(self, remote, local, timeout):
    global fetched
    if remote.endswith(".mds"):
        fetched += os.path.getsize(remote)
    return fetch(self, remote, local, timeout)


download.LocalDownloader._download_file_impl = counted

with tempfile.TemporaryDirectory() as work:
    remote, local = f"{work}/remote", f"{work}/local"
    random = np.random.default_rng(0)
    with MDSWriter(out=remote, columns={"image": "bytes"}, size_limit=SAMPLES * (BYTES + 100)) as writer:
        for _ in range(SHARDS * SAMPLES):
            writer.write({"image": random.bytes(BYTES)})
    total = sum(os.path.getsize(f"{remote}/{name}") for name in os.listdir(remote) if name.endswith(".mds"))
    clean_stale_shared_memory()
    block = {"shuffle_block_size": int(sys.argv[1])} if len(sys.argv) > 1 else {}
    dataset = StreamingDataset(
        remote=remote, local=local, shuffle=True, batch_size=64, cache_limit=total // 2, num_canonical_nodes=1, **block
    )
    for epoch in range(3):
        before = fetched
        for _ in DataLoader(dataset, batch_size=64):
            pass
        print(f"epoch {epoch + 1}: {(fetched - before) / total:.3f} of the data fetched", flush=True)
