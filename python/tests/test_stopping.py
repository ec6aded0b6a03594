"""A loop can be interrupted at every moment of its start, and leaves no reader."""

import os
import signal
import subprocess
import threading
import time

import pytest

import shardtool
from datasets import children
from shardtool.bridge.reader_process import ReaderProcess
from signals import pressed

#: Number of moments of a start that are tested; `npm run test:long` tests more.
MOMENTS = 5 * int(os.environ.get("SHARDTOOL_TIMES", "1"))


@pytest.fixture(scope="module")
def endless(small):
    def make():
        return shardtool.Loader(small, batch_size=10, output="numpy", epochs_per_loop=float("inf"), workers=1)

    return make


@pytest.fixture(scope="module")
def start_time(endless):
    """Seconds from the request for the first batch to its delivery."""
    began = time.monotonic()
    loader = endless()
    next(iter(loader))
    seconds = time.monotonic() - began
    loader.close()
    return seconds


def loop(batches, ended):
    """Requests batches until an error ends the loop, which `ended` gets."""
    try:
        for _ in batches:
            pass
    except BaseException as error:
        ended.append(error)


def test_closing_in_another_thread_at_any_moment_ends_the_loop(endless, start_time):
    before = children()
    loader = endless()
    for moment in range(MOMENTS):
        ended = []
        thread = threading.Thread(target=loop, args=(iter(loader), ended))
        thread.start()
        time.sleep(start_time * 1.3 * moment / MOMENTS)
        loader.close()
        thread.join(30)
        assert not thread.is_alive()
        assert [type(error) for error in ended] == [shardtool.StaleIteratorError], ended
        assert children() == before
    assert len(next(iter(loader))) == 2
    loader.close()
    assert children() == before


def test_an_interrupt_at_any_moment_ends_the_loop(endless, start_time):
    before = children()
    for moment in range(MOMENTS):
        loader = endless()
        with pytest.raises(KeyboardInterrupt), pressed(signal.SIGINT, start_time * 1.3 * moment / MOMENTS):
            for _ in loader:
                pass
        loader.close()
        assert children() == before


def test_an_interrupt_while_the_process_starts_ends_it(monkeypatch):
    before = children()
    start = subprocess.Popen

    def interrupted(command, **options):
        process = start(command, **options)
        # Before that, Node runs to print its version, and ends by itself.
        if "--slot-file" in command:
            signal.raise_signal(signal.SIGINT)
        return process

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    # The exception, with everything in its traceback, is kept until the processes are counted.
    with pytest.raises(KeyboardInterrupt) as raised:
        ReaderProcess()
    assert children() == before
    assert raised.value is not None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_handler_that_closes_the_loader_ends_the_loop(endless, start_time):
    before = children()
    loader = endless()
    previous = signal.signal(signal.SIGUSR1, lambda *_: loader.close())
    try:
        for moment in range(MOMENTS):
            # If it is closed before its loop begins, the loader only starts again.
            batches = iter(loader)
            stopped = pytest.raises(shardtool.StaleIteratorError)
            with pressed(signal.SIGUSR1, start_time * 1.3 * moment / MOMENTS), stopped:
                for _ in batches:
                    pass
            assert children() == before
    finally:
        signal.signal(signal.SIGUSR1, previous)


def test_a_loader_closed_between_an_answer_and_its_memory_ends_the_loop(endless, monkeypatch):
    loader = endless()
    batches = iter(loader)
    next(batches)
    request = ReaderProcess.request

    def request_and_close(reader, *asked, **content):
        frame = request(reader, *asked, **content)
        loader.close()
        return frame

    monkeypatch.setattr(ReaderProcess, "request", request_and_close)
    with pytest.raises(shardtool.StaleIteratorError):
        next(batches)


def test_a_signal_handler_that_uses_the_reader_is_rejected_and_the_loader_continues(endless):
    loader = endless()
    list(zip(range(3), loader))
    refused = []

    def ask(*_):
        with pytest.raises(shardtool.ReaderError, match="signal's handler"):
            loader.report()
        refused.append(True)

    previous = signal.signal(signal.SIGUSR1, ask)
    taken = ReaderProcess._read_piece
    try:
        ReaderProcess._read_piece = lambda reader: (signal.raise_signal(signal.SIGUSR1), taken(reader))
        assert len(list(zip(range(30), loader))) == 30
    finally:
        ReaderProcess._read_piece = taken
        signal.signal(signal.SIGUSR1, previous)
    assert refused
    assert loader.report()["batches"] >= 30
    loader.close()
