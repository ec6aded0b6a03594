"""A progress bar in one line of the terminal."""

import sys
import time


def progress(batches, total, label):
    """The same batches, with a bar on standard error."""
    started = time.monotonic()
    for done, batch in enumerate(batches, 1):
        yield batch
        bar = ("#" * (30 * done // total)).ljust(30)
        sys.stderr.write(f"\r{label} [{bar}] {done}/{total} {done / (time.monotonic() - started):.1f} batches/s")
        sys.stderr.flush()
    sys.stderr.write("\n")
