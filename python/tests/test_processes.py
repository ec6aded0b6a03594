"""Two processes: what happens to one when the other ends, forks and threads, and processes that are left."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import shardtool
from datasets import CHECKOUT, children, seen
from shardtool.bridge import reader_process, slot_file
from signals import pressed

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(CHECKOUT / "python" / "src")}


def is_alive(pid):
    """Whether it is running: a process that has ended but was not waited for is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends_within(pid, seconds):
    deadline = time.monotonic() + seconds
    while is_alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def shared_names():
    places = ("/dev/shm", "/tmp")
    return {f"{place}/{name}" for place in places for name in os.listdir(place) if "slots" in name}


def start_python(program, *arguments):
    """A Python that loops over a loader and prints the reader's pid first."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    )


def reader_of(python):
    line = python.stdout.readline()
    assert line.strip().isdigit(), line
    return int(line)


LOOP = """
import shardtool, sys, time
loader = shardtool.Loader(sys.argv[1], batch_size=10, output="numpy", epochs_per_loop=float("inf"))
for batch in loader:
    if batch.epoch == batch.batch_index == 0:
        print(loader._reader.pid, flush=True)
    time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def whole(small):
    """The batches of an undisturbed epoch."""
    with shardtool.Loader(small, batch_size=10, output="numpy", with_keys=True) as loader:
        return [seen(batch) for batch in loader]


def keys_of(batches):
    return [key for batch in batches for key in batch["keys"]]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_reader_that_is_killed_raises_in_the_next_batch(small, whole, number):
    loader = shardtool.Loader(small, batch_size=10, output="numpy", with_keys=True, prefetch_batches=2)
    iterator = iter(loader)
    before = seen(next(iterator))
    state = loader.state_dict()
    os.kill(loader._reader.pid, number)
    with pytest.raises(shardtool.ReaderError, match=f"was ended by {number.name}"):
        for _ in range(3):
            next(iterator)
    # A new reader continues where the batches ended.
    loader.load_state_dict(state)
    rest = [seen(batch) for batch in loader]
    loader.close()
    assert keys_of([before, *rest]) == keys_of(whole)


def test_a_reader_that_ends_reports_how_and_its_last_lines(small, monkeypatch, tmp_path):
    program = tmp_path / "main.mjs"
    program.write_text("for (let i = 0; i < 9000; i++) console.error(`line ${i}`);\nprocess.exitCode = 7;\n")
    monkeypatch.setattr(reader_process, "find_program", lambda _: str(program))
    with pytest.raises(shardtool.ReaderError, match="exit status 7") as caught:
        len(shardtool.Loader(small))
    assert str(caught.value).splitlines()[-2:] == ["line 8998", "line 8999"]
    assert len(str(caught.value)) < 500


def test_a_reader_that_hears_nothing_ends_in_time(small):
    loader = shardtool.Loader(small, output="numpy")
    next(iter(loader))
    os.kill(loader._reader.pid, signal.SIGSTOP)
    started = time.monotonic()
    loader.close()
    assert time.monotonic() - started < 60


def test_the_reader_ends_when_python_is_killed(small):
    names = shared_names()
    with start_python(LOOP, small) as python:
        reader = reader_of(python)
        assert is_alive(reader)
        python.kill()
    assert ends_within(reader, 60)
    assert shared_names() == names


# Another process holds the pipe to the reader open; and the kernel does not end a reader that a thread has started.
HELD_PIPE = """
import os, shardtool, subprocess, sys, threading, time
def loop():
    for batch in loader:
        time.sleep(0.01)
loader = shardtool.Loader(sys.argv[1], batch_size=10, output="numpy", epochs_per_loop=float("inf"))
if sys.argv[2] == "thread":
    threading.Thread(target=loop, daemon=True).start()
    while loader._reader is None:
        time.sleep(0.01)
else:
    iterator = iter(loader)
    next(iterator)
print(loader._reader.pid, flush=True)
holder = os.fork()
if holder == 0:
    os.close(1)
    time.sleep(60)
    os._exit(0)
print(holder, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("started_by", ["main", "thread"])
def test_the_reader_ends_with_python_even_if_another_process_holds_its_pipe(small, started_by):
    with start_python(HELD_PIPE, small, started_by) as python:
        reader, holder = reader_of(python), reader_of(python)
        python.kill()
    try:
        assert is_alive(holder)
        assert ends_within(reader, 60)
    finally:
        os.kill(holder, signal.SIGKILL)


def test_a_thread_that_started_the_reader_may_end(small):
    loader = shardtool.Loader(small, batch_size=10, output="numpy")
    iterator = iter(loader)
    thread = threading.Thread(target=lambda: next(iterator))
    thread.start()
    thread.join(30)
    time.sleep(0.1)
    assert len(list(iterator)) == 19
    loader.close()


def test_the_reader_ends_with_a_loader_that_is_no_longer_used(small):
    loader = shardtool.Loader(small, output="numpy")
    images, _ = next(iter(loader))
    reader = loader._reader.pid
    del loader
    assert ends_within(reader, 60)
    assert images.shape[0] == 64


def test_python_ends_by_itself_with_a_loop_under_way(small):
    program = "import shardtool, sys\nloop = iter(shardtool.Loader(sys.argv[1], output='numpy'))\nnext(loop)\n"
    with start_python(program, small) as python:
        assert python.wait(120) == 0


def test_ctrl_c_leaves_the_reader_to_python(small):
    with shardtool.Loader(small, batch_size=10, output="numpy") as loader:
        iterator = iter(loader)
        next(iterator)
        os.kill(loader._reader.pid, signal.SIGINT)
        time.sleep(0.1)
        assert len(list(iterator)) == 19


def test_an_interrupted_wait_loses_no_batch_silently(small, whole):
    loader = shardtool.Loader(small, batch_size=10, output="numpy", with_keys=True)
    iterator = iter(loader)
    first = seen(next(iterator))
    os.kill(loader._reader.pid, signal.SIGSTOP)
    with pytest.raises(KeyboardInterrupt), pressed(signal.SIGINT, 0.3):
        for _ in iterator:
            pass
    state = loader.state_dict()
    assert next(iterator, None) is None
    loader.load_state_dict(state)
    rest = [key for batch in loader for key in batch.keys]
    loader.close()
    keys = keys_of(whole)
    assert keys[:10] == first["keys"]
    assert keys[-len(rest) :] == rest
    assert state["position"] == 200 - len(rest)


def in_fork(work):
    """Runs `work` in a forked process and returns its exit status."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(work())
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_loader_is_not_for_forked_processes_and_a_fork_does_not_harm_it(small):
    loader = shardtool.Loader(small, batch_size=10, output="numpy")
    iterator = iter(loader)
    next(iterator)

    def use():
        raised = 0
        for use_it in (lambda: next(iterator), lambda: iter(loader), lambda: len(loader), lambda: loader.state_dict()):
            try:
                use_it()
            except shardtool.ForkedLoaderError:
                raised += 1
        return raised

    assert in_fork(use) == 4

    def leave():
        loader.close()
        return 0

    assert in_fork(leave) == 0
    assert len(list(iterator)) == 19
    loader.close()


def test_other_child_processes_get_nothing_of_the_loader(small):
    with shardtool.Loader(small, batch_size=10, output="numpy") as loader:
        next(iter(loader))
        listed = subprocess.run(["ls", "-l", "/proc/self/fd"], capture_output=True, text=True, check=True).stdout
    assert "shardtool" not in listed


def test_a_loader_is_not_sent_to_another_process(small):
    with pytest.raises(TypeError, match="num_workers=0"):
        pickle.dumps(shardtool.Loader(small))


@pytest.mark.parametrize("create", [slot_file.create_unlinked_file, slot_file.create_slot_file])
def test_the_slots_have_no_name_and_take_any_kind_of_file(small, whole, monkeypatch, create):
    names = shared_names()
    monkeypatch.setattr(reader_process, "create_slot_file", create)
    with shardtool.Loader(small, batch_size=10, output="numpy", with_keys=True) as loader:
        batches = [seen(batch) for batch in loader]
        assert shared_names() == names
    assert batches == whole


def test_a_python_without_memfd_create_asks_the_c_library(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    descriptor = slot_file.create_slot_file()
    assert "memfd:shardtool-slots" in os.readlink(f"/proc/self/fd/{descriptor}")
    assert not os.get_inheritable(descriptor)
    os.close(descriptor)


def test_a_decode_worker_starts_with_the_reader_and_the_first_loop_uses_it(small, monkeypatch):
    def threads_opened_and_looping():
        with shardtool.Loader(small, batch_size=10, workers=1, output="numpy") as loader:
            assert loader.num_samples == 200
            opened = threads(loader)
            next(iter(loader))
            return opened, threads(loader)

    opened, looping = threads_opened_and_looping()
    monkeypatch.setattr("shardtool.loader._workers", lambda _: None)
    opened_without, looping_without = threads_opened_and_looping()
    assert (opened - opened_without, looping - looping_without) == (1, 0)


def threads(loader):
    return len(os.listdir(f"/proc/{loader._reader.pid}/task"))


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2", True, 100_000])
def test_an_invalid_number_of_workers_is_an_error_of_the_option_and_the_reader_ends(small, workers):
    before = children()
    with pytest.raises(shardtool.OptionError, match="workers"):
        next(iter(shardtool.Loader(small, batch_size=10, workers=workers, output="numpy")))
    assert children() == before
