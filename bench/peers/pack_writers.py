"""Writes a folder of class folders of JPEGs in another library's format, with the bytes of the files unchanged. Prints one
line of JSON: the versions, the seconds from the first photo to the finished output, without imports, and the seconds of
the check afterwards that the output has every photo.

    python pack_writers.py webdataset|mds|litdata --photos FOLDER --out FOLDER [--workers 2]
"""

import argparse
import json
import os
import sys
import tarfile
import time

from measure import list_photos

SHARD_BYTES = 256 * 2**20


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write_webdataset(photos, out, workers):
    """ShardWriter has one thread and checks nothing."""
    import webdataset

    os.makedirs(out)
    start = time.perf_counter()
    pattern = os.path.join(out, "%06d.tar")
    with webdataset.ShardWriter(pattern, maxsize=SHARD_BYTES, maxcount=10**9, verbose=0) as writer:
        for number, (path, label) in enumerate(photos):
            writer.write({"__key__": f"{number:08d}", "jpg": read(path), "cls": label})
    return start, f"webdataset {webdataset.__version__}"


def write_mds(photos, out, workers):
    """MDSWriter has one thread. It computes a checksum of each shard: xxh64 here, the fastest that it supports."""
    import streaming
    from streaming import MDSWriter

    start = time.perf_counter()
    columns = {"image": "bytes", "label": "int"}
    with MDSWriter(out=out, columns=columns, hashes=["xxh64"], size_limit=SHARD_BYTES) as writer:
        for path, label in photos:
            writer.write({"image": read(path), "label": label})
    return start, f"mosaicml-streaming {streaming.__version__}"


def litdata_sample(photo):
    path, label = photo
    return {"image": read(path), "label": label}


def write_litdata(photos, out, workers):
    """optimize has worker processes and checks nothing."""
    import litdata

    start = time.perf_counter()
    litdata.optimize(
        fn=litdata_sample,
        inputs=photos,
        output_dir=out,
        num_workers=workers,
        chunk_bytes=SHARD_BYTES,
        reorder_files=False,
        verbose=False,
    )
    return start, f"litdata {litdata.__version__}"


def count_tar(out):
    names = [name for name in os.listdir(out) if name.endswith(".tar")]
    count = 0
    for name in names:
        with tarfile.open(os.path.join(out, name)) as shard:
            count += sum(member.name.endswith(".jpg") for member in shard)
    return count


def count_mds(out):
    with open(os.path.join(out, "index.json")) as file:
        return sum(shard["samples"] for shard in json.load(file)["shards"])


def count_litdata(out):
    with open(os.path.join(out, "index.json")) as file:
        return sum(chunk["chunk_size"] for chunk in json.load(file)["chunks"])


def check_complete(count, out, photos):
    """Checks that the output has every photo: the same number of samples, and at least as many bytes."""
    samples = count(out)
    size = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(out) for name in names)
    least = sum(os.path.getsize(path) for path, _ in photos)
    if samples != len(photos) or size < least:
        sys.exit(f"Error: wrote {samples} samples in {size} bytes from {len(photos)} photos in {least} bytes")


COUNTS = {"webdataset": count_tar, "mds": count_mds, "litdata": count_litdata}
WRITERS = {"webdataset": write_webdataset, "mds": write_mds, "litdata": write_litdata}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("writer", choices=WRITERS)
    parser.add_argument("--photos", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    photos = list_photos(arguments.photos)
    start, versions = WRITERS[arguments.writer](photos, arguments.out, arguments.workers)
    seconds = time.perf_counter() - start
    check_start = time.perf_counter()
    check_complete(COUNTS[arguments.writer], arguments.out, photos)
    checked = time.perf_counter() - check_start
    print(json.dumps({"versions": versions, "seconds": seconds, "checkSeconds": checked}))
