"""shardtool from Python: a loop over shardtool.Loader, with the reader in its own process."""

import resource
import sys
from pathlib import Path

from measure import measure, parse_arguments

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "src"))

import shardtool  # noqa: E402
import torch  # noqa: E402


class Epochs:
    """Starts epochs, and measures the CPU time of this process without that of the reader."""

    def __init__(self, arguments):
        self.loader = shardtool.Loader(
            arguments.shards,
            batch_size=arguments.batch,
            transform="train224",
            workers=arguments.workers,
            checksum="always",
            last_batch="drop",
        )
        self.batches = 0
        self.cpu_seconds = 0.0

    def __call__(self):
        before = cpu_seconds()
        for images, _ in self.loader:
            self.batches += 1
            yield images
        self.cpu_seconds += cpu_seconds() - before


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    torch.set_num_threads(1)
    epochs = []

    def build(arguments):
        epochs.append(Epochs(arguments))
        return epochs[0]

    def notes():
        milliseconds = epochs[0].cpu_seconds / epochs[0].batches * 1000
        epochs[0].loader.close()
        return f"checksum: 'always'; {milliseconds:.2f} ms of CPU a batch in the Python process"

    measure(
        "shardtool from Python",
        f"shardtool {shardtool.__version__}, torch {torch.__version__}, Python {sys.version_info[0]}.{sys.version_info[1]}",
        build,
        parse_arguments(),
        notes,
    )
