"""Reads tars with NVIDIA DALI on the CPU, with the .idx files next to them and again without.

    python bench/dali-index.py SHARDS

SHARDS is a folder of tars packed with `--index dali`. Exits with an error unless DALI finds the same samples both ways.
Needs the package nvidia-dali-cuda120 (about 400 MB; no GPU is used).
"""

import glob
import hashlib
import os
import sys

import nvidia.dali as dali


@dali.pipeline_def(batch_size=16, num_threads=1, device_id=None)
def reader(tars, indexes):
    return tuple(dali.fn.readers.webdataset(paths=tars, index_paths=indexes, ext=["jpg", "cls"], name="reader"))


def contents(tars, indexes):
    pipeline = reader(tars, indexes)
    samples = pipeline.epoch_size("reader")
    found = []
    while len(found) < samples:
        images, classes = pipeline.run()
        for i in range(len(images)):
            found.append((hashlib.md5(bytes(images.at(i))).hexdigest(), bytes(classes.at(i))))
    return found[:samples]


tars = sorted(glob.glob(os.path.join(sys.argv[1], "*.tar")))
with_indexes = contents(tars, [tar[: -len(".tar")] + ".idx" for tar in tars])
if with_indexes != contents(tars, []):
    sys.exit("DALI reads other samples with the indexes than without them")
print(f"DALI {dali.__version__} reads the same {len(with_indexes)} samples of {len(tars)} tars with the indexes as without them")
