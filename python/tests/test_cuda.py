"""Batches that are copied to a GPU; without a GPU, to a simulated CUDA that does its work as late as possible."""

import gc
import json
import os
import zlib
from collections import deque
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import shardtool
from datasets import pack
from shardtool import cuda
from shardtool.bridge.reader_process import ReaderProcess

pytestmark = pytest.mark.usefixtures("lent_readers")

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
OPTIONS = {"batch_size": 7, "transform": [{"name": "resize", "size": [24, 40]}], "workers": 1, "seed": 5}


class SimulatedEvent:
    def __init__(self, stream):
        self._stream = stream
        self._after = stream.given

    def synchronize(self):
        self._stream.work_until(self._after)

    def query(self):
        return self._stream.done >= self._after


class SimulatedStream:
    """Pending work, which is done when something waits for it."""

    def __init__(self):
        self.given = 0
        self.done = 0
        self._work = deque()

    def give(self, work):
        self._work.append(work)
        self.given += 1

    def work_until(self, number):
        while self.done < number:
            self._work.popleft()()
            self.done += 1


class SimulatedCuda(cuda.Cuda):
    """`torch.cuda` over CPU tensors. A race on a GPU is an AssertionError here."""

    refuses = False
    latest = None

    def __init__(self, device):
        self.device = device
        self.stream = SimulatedStream()
        self.registered = {}
        self.staged = 0
        self.ready = []
        SimulatedCuda.latest = self

    def register(self, address, length):
        if self.refuses:
            return "refused"
        assert address not in self.registered
        self.registered[address] = length
        return None

    def unregister(self, address):
        assert self.stream.done == self.stream.given, "memory is given back while it is copied"
        assert is_mapped(address), "memory is unmapped while CUDA has it registered"
        del self.registered[address]

    def pinned(self, tensor):
        self.staged += 1
        pinned = tensor.clone()
        pinned.is_staged = True
        return pinned

    def copy(self, tensor):
        where = tensor.data_ptr()
        in_slot = any(start <= where < start + length for start, length in self.registered.items())
        assert in_slot or hasattr(tensor, "is_staged"), "memory that is not page-locked is copied asynchronously"
        before = crc(tensor)
        target = torch.empty_like(tensor)

        def work():
            assert crc(tensor) == before, "a slot was filled again before it was copied"
            target.copy_(tensor)

        self.stream.give(work)
        return target

    def convert(self, how, tensor):
        target = how(torch.zeros_like(tensor))
        self.stream.give(lambda: target.copy_(how(tensor)))
        return target

    def record(self):
        return SimulatedEvent(self.stream)

    def hand_over(self, ready, tensors):
        # The consumer's stream waits, not this thread, so the test may compare at any time.
        self.ready.append(ready)
        assert len(tensors) >= 2

    def synchronize(self):
        self.stream.work_until(self.stream.given)


def is_mapped(address):
    ranges = (line.split()[0].split("-") for line in Path("/proc/self/maps").read_text().splitlines())
    return any(int(start, 16) <= address < int(end, 16) for start, end in ranges)


def crc(tensor):
    # In the order of the memory: channels_last images are contiguous as [n, h, w, 3].
    return zlib.crc32(np.ascontiguousarray(tensor.numpy()))


@pytest.fixture
def simulated(monkeypatch):
    """The loader uses the simulated CUDA in place of torch's."""
    monkeypatch.setattr("shardtool.loader.Cuda", SimulatedCuda)
    monkeypatch.setattr(SimulatedCuda, "refuses", False)


def on_the_host(location, epochs=1, **options):
    with shardtool.Loader(location, with_keys=True, **{**OPTIONS, **options}) as loader:
        return [(images.clone(), labels, keys) for _ in range(epochs) for images, labels, keys in loader]


@pytest.fixture(scope="module")
def host(small):
    """An epoch of the small images."""
    return on_the_host(small)


def on_the_device(location, epochs=1, **options):
    """Compares each batch as late as possible: when the loops are over."""
    with shardtool.Loader(location, with_keys=True, device="cuda", **{**OPTIONS, **options}) as loader:
        batches = [tuple(batch) for _ in range(epochs) for batch in loader]
        for ready in SimulatedCuda.latest.ready:
            ready.synchronize()
        return batches


def expected_values(images, dtype):
    scale = torch.tensor([1 / (255 * s) for s in STD]).view(1, 3, 1, 1)
    bias = torch.tensor([-m / s for m, s in zip(MEAN, STD)]).view(1, 3, 1, 1)
    return (images.float() * scale + bias).to(dtype)


def same(got, expected):
    assert len(got) == len(expected) > 0
    for (images, labels, keys), (images_0, labels_0, keys_0) in zip(got, expected):
        assert images.dtype == images_0.dtype and torch.equal(images, images_0)
        assert torch.equal(labels, labels_0) and keys == keys_0


def test_simulated_slots_are_filled_again_only_when_their_copies_are_done(simulated, small):
    same(on_the_device(small, epochs=3), on_the_host(small, epochs=3))
    assert SimulatedCuda.latest.registered == {}


def test_simulated_slots_that_do_not_wait_are_seen(simulated, small, monkeypatch):
    monkeypatch.setattr(SimulatedEvent, "synchronize", lambda self: None)
    monkeypatch.setattr(SimulatedCuda, "synchronize", lambda self: None)
    with shardtool.Loader(small, device="cuda", epochs_per_loop=5, **OPTIONS) as loader:
        for _ in loader:
            pass
        stream = SimulatedCuda.latest.stream
        with pytest.raises(AssertionError, match="a slot was filled again before it was copied"):
            stream.work_until(stream.given)
        stream.done = stream.given


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_simulated_images_are_normalized_and_converted_on_the_device(simulated, small, host, dtype):
    got = on_the_device(small, dtype=dtype, mean=MEAN, std=STD)
    same(got, [(expected_values(images, getattr(torch, dtype)), *rest) for images, *rest in host])
    assert got[0][0].is_contiguous(memory_format=torch.channels_last)


def test_simulated_values_are_those_of_the_reader_bit_for_bit(simulated, small):
    normalize = {"name": "normalize", "mean": list(MEAN), "std": list(STD)}
    host = on_the_host(small, transform=[*OPTIONS["transform"], normalize])
    same(on_the_device(small, mean=MEAN, std=STD), host)


@pytest.fixture(scope="module")
def along(tmp_path_factory):
    """20 images, each with a second one and a mask of the values 0 to 4."""
    folder = tmp_path_factory.mktemp("along")
    rng = np.random.default_rng(3)
    for number in range(20):
        stem = folder / "images" / "ab"[number % 2] / f"{number:02}"
        stem.parent.mkdir(parents=True, exist_ok=True)
        for suffix in (".jpg", ".right.png"):
            Image.fromarray(rng.integers(0, 256, (32, 40, 3), dtype=np.uint8)).save(f"{stem}{suffix}")
        Image.fromarray(rng.integers(0, 5, (32, 40), dtype=np.uint8)).save(f"{stem}.seg.png")
    return pack(folder / "images", folder / "shards", "--fields", "seg.png", "--fields", "right.png")


def test_simulated_masks_keep_their_values_and_more_images_are_normalized(simulated, along):
    names = {"image": "jpg", "masks": ["seg.png"], "extra_images": ["right.png"]}
    options = {**OPTIONS, **names, "transform": [{"name": "random_resized_crop", "size": 24}]}
    with shardtool.Loader(along, **options) as loader:
        expected = [
            (batch.images.clone(), batch.masks["seg.png"].clone(), batch.extra_images["right.png"].clone())
            for batch in loader
        ]
    with shardtool.Loader(along, device="cuda", dtype="float16", mean=MEAN, std=STD, **options) as loader:
        got = list(loader)
        for ready in SimulatedCuda.latest.ready:
            ready.synchronize()
    assert len(got) == len(expected) == 3
    for batch, (images, mask, right) in zip(got, expected):
        assert batch.masks["seg.png"].dtype == torch.uint8 and torch.equal(batch.masks["seg.png"], mask)
        assert set(mask.unique().tolist()) <= {0, 1, 2, 3, 4}
        assert torch.equal(batch.images, expected_values(images, torch.float16))
        assert torch.equal(batch.extra_images["right.png"], expected_values(right, torch.float16))


def test_simulated_arrays_of_samples_without_images_are_on_the_device(simulated, tmp_path):
    arrays = np.random.default_rng(3).standard_normal((40, 4, 6)).astype(np.float16)
    with shardtool.Writer(tmp_path / "shards", primary="latent.npy") as writer:
        for number, array in enumerate(arrays):
            writer.add(
                f"{number:02}", txt=str(number), label=number % 3, **{"latent.npy": array, "n.npy": np.int16(number)}
            )
    for options in ({"device": "cuda"}, {"pin_memory": True}, {"pin_memory": True, "reuse": False}):
        with shardtool.Loader(tmp_path / "shards", batch_size=7, epochs_per_loop=3, workers=1, **options) as loader:
            batches = list(loader)
            for ready in SimulatedCuda.latest.ready:
                ready.synchronize()
            assert SimulatedCuda.latest.registered or options != {"device": "cuda"}
        assert len(batches) == 18
        for batch in batches:
            fields, labels = batch
            assert fields is batch.fields and batch.images is None
            numbers = [int(text) for text in fields["txt"]]
            assert fields["n.npy"].tolist() == numbers
            np.testing.assert_array_equal(fields["latent.npy"].numpy(), arrays[numbers])
            assert labels.tolist() == [number % 3 for number in numbers]
    with (
        shardtool.Loader(tmp_path / "shards", device="cuda", dtype="float16", workers=1) as loader,
        pytest.raises(shardtool.OptionError, match="dtype, mean and std convert images, and the samples have none"),
    ):
        list(loader)


def test_simulated_objects_are_on_the_device_and_cut_there(simulated, tmp_path):
    for number in range(12):
        found = [{"bbox": [n, 2, 5, 6], "label": n, "polygon": [[0, 0, n + 4, 0, 3, 3]]} for n in range(number % 4)]
        file = tmp_path / "images" / "a" / f"{number:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 32)).save(file)
        file.with_suffix(".json").write_text(json.dumps({"objects": found}))
    location = pack(tmp_path / "images", tmp_path / "shards")
    annotations = {
        "boxes": {"field": "json", "path": "objects.bbox"},
        "labels": {"field": "json", "path": "objects.label"},
        "polygons": {"field": "json", "path": "objects.polygon"},
    }
    options = {**OPTIONS, "annotations": annotations}
    with shardtool.Loader(location, **options) as loader:
        expected = list(loader)
    with shardtool.Loader(location, device="cuda", **options) as loader:
        got = list(loader)
        for ready in SimulatedCuda.latest.ready:
            ready.synchronize()
    for batch, host in zip(got, expected):
        # Copies: the bytes that the stream copies, and not those of the host.
        assert batch.boxes.data_ptr() != host.boxes.data_ptr()
        assert torch.equal(batch.boxes, host.boxes) and torch.equal(batch.box_labels, host.box_labels)
        assert torch.equal(batch.polygons.points, host.polygons.points)
        for target, other in zip(batch.targets(), host.targets()):
            assert torch.equal(target["boxes"], other["boxes"]) and len(target["polygons"]) == len(other["labels"])
        padded, there = batch.padded(), host.padded()
        assert all(torch.equal(padded[name], there[name]) for name in ("boxes", "labels", "mask"))
    assert sum(len(batch.boxes) for batch in got) == 18


def test_simulated_slots_that_cannot_be_pinned_are_copied_once_more_after_a_warning(
    simulated, small, host, monkeypatch
):
    monkeypatch.setattr(SimulatedCuda, "refuses", True)
    with pytest.warns(UserWarning, match="cannot be page-locked, so each batch is copied once more"):
        same(on_the_device(small), host)


def test_simulated_state_is_that_of_the_batch_in_use_and_resumes_there(simulated, small, host):
    with shardtool.Loader(small, device="cuda", **OPTIONS) as loader:
        batches = iter(loader)
        for _ in range(4):
            next(batches)
        state = loader.state_dict()
    with shardtool.Loader(small, device="cuda", with_keys=True, **OPTIONS) as loader:
        loader.load_state_dict(state)
        keys = [batch.keys for batch in loader]
    assert keys == [keys for _, _, keys in host[4:]]


def test_simulated_loops_that_are_left_early_end_their_copies_first(simulated, small):
    with shardtool.Loader(small, device="cuda", with_keys=True, **OPTIONS) as loader:
        for _ in range(4):
            next(iter(loader))
        epochs = {batch.epoch for batch in loader}
    assert epochs == {4}


def test_simulated_reader_that_dies_raises_after_the_batches_before(simulated, small):
    with shardtool.Loader(small, device="cuda", **OPTIONS) as loader:
        batches = iter(loader)
        next(batches)
        loader._reader._process.kill()
        with pytest.raises(shardtool.ReaderError, match="SIGKILL"):
            for _ in range(40):
                next(batches)


def test_simulated_pin_memory_copies_batches_into_memory_that_torch_keeps_until_copies_end(simulated, small, host):
    with shardtool.Loader(small, pin_memory=True, with_keys=True, **OPTIONS) as loader:
        batches = list(loader)
        assert all(hasattr(batch.images, "is_staged") for batch in batches)
        same([tuple(batch) for batch in batches], host)
        assert SimulatedCuda.latest.registered == {}


def test_simulated_pin_memory_holds_for_the_results_of_a_function(simulated, small, host):
    with shardtool.Loader(
        small, pin_memory=True, with_keys=True, python_transform=lambda image: image, python_workers=1, **OPTIONS
    ) as loader:
        batches = list(loader)
    assert all(hasattr(batch.images, "is_staged") for batch in batches)
    same([tuple(batch) for batch in batches], host)


def test_simulated_pin_memory_with_reuse_pins_the_slots(simulated, small):
    with shardtool.Loader(small, pin_memory=True, reuse=True, **OPTIONS) as loader:
        for images, _ in loader:
            [(start, length)] = SimulatedCuda.latest.registered.items()
            assert start <= images.data_ptr() < start + length
    assert SimulatedCuda.latest.registered == {}


@pytest.mark.parametrize("options", [{"device": "cuda"}, {"pin_memory": True, "reuse": True}])
@pytest.mark.parametrize("is_in_a_cycle", [False, True])
def test_simulated_slots_of_a_loader_that_was_dropped_are_no_longer_registered(
    simulated, small, options, is_in_a_cycle, monkeypatch
):
    # With a separate reader, whose memory nothing else keeps.
    monkeypatch.setattr("shardtool.loader.ReaderProcess", ReaderProcess)
    loader = shardtool.Loader(small, **options, **OPTIONS)
    if is_in_a_cycle:
        loader._itself = loader
    # The loop is left early: copies are pending, and a batch outlives the loader.
    batch = next(iter(loader))
    registered = SimulatedCuda.latest.registered
    assert len(registered) == 1
    del loader
    gc.collect()
    assert registered == {}
    assert batch.images.shape == (7, 3, 24, 40)


def test_simulated_slots_stay_registered_when_a_forked_copy_of_the_loader_is_dropped(simulated, small):
    loader = shardtool.Loader(small, device="cuda", **OPTIONS)
    next(iter(loader))
    registered = SimulatedCuda.latest.registered
    child = os.fork()
    if child == 0:
        loader._pinned = None
        os._exit(len(registered))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    loader.close()
    assert registered == {}


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch has CUDA here")
@pytest.mark.parametrize("options", [{"device": "cuda"}, {"device": "cuda:3"}, {"pin_memory": True}])
def test_without_cuda_the_options_report_what_is_missing(small, options):
    with pytest.raises(
        shardtool.OptionError, match=r"needs CUDA, but torch .* finds no CUDA device: install NVIDIA's driver"
    ):
        shardtool.Loader(small, **options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"device": "gpu"}, 'device must be "cpu", "cuda" or "cuda:N"'),
        ({"device": "cuda", "output": "numpy"}, "returns torch tensors"),
        ({"device": "cuda", "dtype": "float64"}, "dtype must be uint8, float16, bfloat16 or float32"),
        ({"device": "cuda", "std": (1, 0, 1)}, "std must be greater than 0"),
        ({"device": "cuda", "mean": (0, 0, 0), "dtype": "uint8"}, "remove dtype='uint8'"),
        ({"dtype": "float16"}, 'set device="cuda", or use the step normalize in the transform'),
        ({"pin_memory": True, "output": "numpy"}, "pin_memory is for torch tensors"),
    ],
)
def test_simulated_invalid_options_are_rejected(simulated, small, options, reason):
    with pytest.raises(shardtool.OptionError, match=reason):
        shardtool.Loader(small, **options)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU, and torch has none here")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_on_a_gpu_batches_are_those_of_the_cpu(small, host, dtype):
    expected = [(expected_values(images, getattr(torch, dtype)), *rest) for images, *rest in host]
    options = {**OPTIONS, "device": "cuda", "dtype": dtype, "mean": MEAN, "std": STD}
    with shardtool.Loader(small, with_keys=True, **options) as loader:
        same([(images.cpu(), labels.cpu(), keys) for images, labels, keys in loader], expected)
    for reuse in (False, True):
        with shardtool.Loader(small, pin_memory=True, reuse=reuse, **OPTIONS) as loader:
            assert all(images.is_pinned() for images, _ in loader)
