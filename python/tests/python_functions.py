"""Functions for python_transform, at the top level of a module, as spawned processes require."""

import os
import random
import signal
import time

import numpy as np

#: Folder in which a function leaves a mark, so that it does something only once.
MARKS = "SHARDTOOL_TEST_MARKS"


def inverted(image):
    return 255 - image


def noisy(image):
    """Draws from both generators, so that a wrong seed is detected."""
    noise = np.random.normal(0, 20, image.shape) + random.randint(0, 40)
    return np.clip(image + noise, 0, 255).astype(np.uint8)


def _first_time(key):
    mark = os.path.join(os.environ[MARKS], key.replace("/", "_"))
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def killed_at_times(image, key):
    """Some samples end their worker once, like the kernel does."""
    if int(key[-2:]) % 17 == 0 and _first_time(key):
        os.kill(os.getpid(), signal.SIGKILL)
    return noisy(image)


def killed_always(image, key):
    if key == "b/0001":
        os.kill(os.getpid(), signal.SIGKILL)
    return image


def hangs(image, key):
    if key == "b/0001":
        time.sleep(600)
    return image


def raises(image, key):
    if key.endswith("7"):
        raise ValueError(f"no luck with {key}")
    return noisy(image)


def of_other_shapes(image, key):
    return image[:16] if key == "b/0001" else image


def killed_with_a_child(image, key):
    """A worker that dies once, after it has forked a process that keeps its files open."""
    if key == "b/0001" and _first_time(key):
        child = os.fork()
        if child == 0:
            time.sleep(600)
            os._exit(0)
        os.close(os.open(os.path.join(os.environ[MARKS], f"child-{child}"), os.O_CREAT))
        os.kill(os.getpid(), signal.SIGKILL)
    return image


def signals_its_parent(image):
    os.kill(os.getppid(), signal.SIGUSR1)
    return image
