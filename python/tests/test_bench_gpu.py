"""bench/gpu/torch_gpu.py, which measures torch on a GPU, runs on CPU tensors and a simulated torch.cuda."""

import contextlib
import importlib.util
import json
import time

import pytest
import torch

from datasets import CHECKOUT

PHOTOS = CHECKOUT / "examples" / "photos"


@pytest.fixture
def bench():
    spec = importlib.util.spec_from_file_location("torch_gpu", CHECKOUT / "bench" / "gpu" / "torch_gpu.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class SimulatedEvent:
    def __init__(self, enable_timing=False):
        self._is_timed = enable_timing

    def record(self, stream):
        self._at = time.perf_counter()

    def elapsed_time(self, other):
        assert self._is_timed and other._is_timed
        return 1000 * (other._at - self._at)


class SimulatedStream:
    def record_event(self):
        return SimulatedEvent()

    def wait_event(self, event):
        assert isinstance(event, SimulatedEvent)


@pytest.fixture
def simulated(monkeypatch):
    """The functions of torch.cuda that the benchmark calls, which do everything immediately."""
    stands_for = {
        "set_device": lambda device: None,
        "synchronize": lambda: None,
        "Stream": SimulatedStream,
        "stream": lambda stream: contextlib.nullcontext(),
        "current_stream": SimulatedStream,
        "Event": SimulatedEvent,
        "_sleep": lambda cycles: time.sleep(0.001),
    }
    for name, stand_in in stands_for.items():
        assert hasattr(torch.cuda, name)
        monkeypatch.setattr(torch.cuda, name, stand_in)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda self, stream: None)


def test_simulated_copies_have_a_rate_of_each_kind(bench, simulated):
    rates = bench.copies("cpu", 2)
    assert rates["pageable"] > 0 and rates["pinned"] > 0


def test_simulated_overlap_is_a_share_next_to_the_separate_times(bench, simulated):
    figures = bench.overlap("cpu", 2, 5)
    assert figures["share"] <= 1 and figures["batchMs"] > 0 and figures["kernelMs"] >= 1


def test_values_are_normalized_float16(bench):
    images = torch.randint(0, 256, (2, 3, 4, 5), dtype=torch.uint8)
    values = bench.Normalize("cpu")(images)
    assert values.dtype == torch.float16 and values.shape == images.shape
    assert abs(values[1, 2, 3, 4].item() - (images[1, 2, 3, 4].item() / 255 - 0.406) / 0.225) < 0.01


@pytest.mark.filterwarnings("ignore:.*pin_memory")
def test_epochs_of_photos_have_a_rate(bench, simulated):
    assert bench.epochs("cpu", 16, str(PHOTOS), 0)["imagesPerSecond"] > 0


def test_a_part_that_fails_is_named_and_leaves_the_others(bench, simulated, monkeypatch, capsys):
    def fails(*args):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(bench, "copies", fails)
    monkeypatch.setattr(bench, "epochs", lambda *args: {"imagesPerSecond": 7.0})
    bench.main(str(PHOTOS), 2, "cpu", 0, 3)
    report = json.loads(capsys.readouterr().out)
    assert report["failures"] == ["copies: RuntimeError: out of memory"]
    assert report["imagesPerSecond"] == 7.0 and "share" in report and "pinned" not in report


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch has CUDA here")
def test_without_cuda_the_benchmark_reports_that(bench):
    with pytest.raises(SystemExit, match="has no CUDA here, so it is not measured"):
        bench.main(str(PHOTOS), 2, "cuda:0", 0, 3)
