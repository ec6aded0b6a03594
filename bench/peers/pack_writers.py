"""Writes a folder of class folders of JPEGs in another library's format, the files' bytes as they are, and prints one line
of JSON: the versions, and the seconds from the first photo to the finished output, imports left out.

    python pack_writers.py webdataset|mds|litdata --photos FOLDER --out FOLDER [--workers 2]
"""

import argparse
import json
import os
import time

from measure import list_photos

SHARD_BYTES = 256 * 2**20


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write_webdataset(photos, out, workers):
    """ShardWriter has one thread, and checks nothing."""
    import webdataset

    os.makedirs(out)
    start = time.perf_counter()
    pattern = os.path.join(out, "%06d.tar")
    with webdataset.ShardWriter(pattern, maxsize=SHARD_BYTES, maxcount=10**9, verbose=0) as writer:
        for number, (path, label) in enumerate(photos):
            writer.write({"__key__": f"{number:08d}", "jpg": read(path), "cls": label})
    return start, f"webdataset {webdataset.__version__}"


def write_mds(photos, out, workers):
    """MDSWriter has one thread. It takes a checksum of each shard, xxh64 here, the quickest that it knows."""
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
    """optimize has worker processes, and checks nothing."""
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
    print(json.dumps({"versions": versions, "seconds": time.perf_counter() - start}))
