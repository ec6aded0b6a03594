"""python_transform: a custom Python function, in worker processes that share memory with the loader."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import python_functions as functions
import torch
from PIL import Image

import shardtool
from datasets import CHECKOUT, children, lines, pack, seen
from shardtool.python_transform import worker

pytestmark = pytest.mark.usefixtures("lent_readers")


def loader_of(location, function, **options):
    given = {"batch_size": 16, "output": "numpy", "with_keys": True, "workers": 1, "python_workers": 2, "seed": 3}
    return shardtool.Loader(location, python_transform=function, **{**given, **options})


def rows(loader, epochs=1):
    """Everything that the loader delivers, by epoch and key."""
    return sorted(lines([seen(batch) for _ in range(epochs) for batch in loader]))


@pytest.fixture(scope="module")
def marked(tmp_path_factory):
    """Images with a mask, boxes and another image."""
    folder = tmp_path_factory.mktemp("marked")
    for number in range(12):
        stem = folder / "images" / "a" / f"{number:02}"
        stem.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 12), (number, number, number)).save(f"{stem}.png")
        Image.new("RGB", (16, 12), (number, 0, 200)).save(f"{stem}.right.png")
        Image.new("L", (16, 12), number).save(f"{stem}.seg.png")
        boxes = [[1, 2, 3 + box, 4] for box in range(number % 3)]
        text = {"boxes": boxes, "labels": [number] * len(boxes)}
        (stem.parent / f"{stem.name}.json").write_text(json.dumps(text))
    fields = [argument for name in ("json", "right.png", "seg.png") for argument in ("--fields", name)]
    return pack(folder / "images", folder / "shards", *fields)


def test_a_function_gets_each_image_and_its_result_is_the_batch(small):
    with loader_of(small, functions.inverted) as loader, loader_of(small, None, python_workers=None) as plain:
        for made, given in zip(loader, plain):
            assert (made.images == 255 - given.images).all()
            assert made.keys == given.keys
            assert (made.labels == given.labels).all()
            assert (made.indices == given.indices).all()


@pytest.mark.parametrize("output", ["torch", "numpy"])
def test_numpy_images_equal_those_of_the_reader(small, output):
    with loader_of(small, lambda image: image, output=output, with_keys=False) as loader:
        images, labels = next(iter(loader))
    with loader_of(small, None, python_workers=None, output=output, with_keys=False) as plain:
        expected, _ = next(iter(plain))
    assert tuple(images.shape) == tuple(expected.shape)
    assert (images == expected).all()
    assert type(labels) is type(expected)


def test_tensors_are_stacked_as_they_are(small):
    with loader_of(small, lambda image: torch.from_numpy(image)[:8].float(), output="torch") as loader:
        images = next(iter(loader)).images
    assert (images.shape, images.dtype) == ((16, 8, 32, 3), torch.float32)


def test_draws_depend_only_on_seed_epoch_and_sample(small):
    with loader_of(small, functions.noisy) as loader:
        expected = rows(loader, epochs=2)
    assert len({crc for _, _, _, crc in expected}) == 400
    with loader_of(small, functions.noisy, python_workers=3, batch_size=7) as loader:
        assert rows(loader, epochs=2) == expected
    with loader_of(small, functions.noisy, python_start_method="spawn") as loader:
        assert rows(loader, epochs=2) == expected
    ranks = []
    for rank in (0, 1):
        with loader_of(small, functions.noisy, rank=rank, world_size=2) as loader:
            ranks += rows(loader, epochs=2)
    assert sorted(ranks) == expected
    with loader_of(small, functions.noisy, seed=4) as loader:
        assert {crc for _, _, _, crc in rows(loader)}.isdisjoint(crc for _, _, _, crc in expected)


def test_a_run_that_resumes_within_an_epoch_continues_exactly(small):
    with loader_of(small, functions.noisy) as loader:
        expected = rows(loader)
    with loader_of(small, functions.noisy) as loader:
        loop = iter(loader)
        first = [seen(next(loop)) for _ in range(5)]
        state = json.loads(json.dumps(loader.state_dict()))
    with loader_of(small, functions.noisy, batch_size=9, python_workers=1) as loader:
        loader.load_state_dict(state)
        assert sorted(lines(first) + rows(loader)) == expected


def test_a_function_gets_its_requested_arguments_by_name(marked):
    wanted = {}

    def look(image, label, key, index, epoch, seed, fields, masks, extra_images, boxes, box_labels):
        number = int(key[-2:])
        assert (image == number).all()
        assert (masks["seg.png"] == number).all()
        assert (extra_images["right.png"][..., 0] == number).all()
        assert boxes.shape == (number % 3, 4)
        assert (box_labels == number).all()
        assert (label, epoch, fields["json"]["labels"]) == (0, 0, [number] * (number % 3))
        return {
            "image": image + 1,
            "masks": {"seg.png": masks["seg.png"] + 2},
            "extra_images": {"second": image[:4]},
            "boxes": boxes[:1] * 2,
            "box_labels": box_labels[:1],
            "label": np.float32(number),
            "drawn": [seed % 7, index],
        }

    annotations = {
        "boxes": {"field": "json", "path": "boxes", "format": "xywh"},
        "labels": {"field": "json", "path": "labels"},
    }
    with loader_of(
        marked, look, fields=["json"], masks=["seg.png"], extra_images=["right.png"], annotations=annotations
    ) as loader:
        (batch,) = loader
    for row, key in enumerate(batch.keys):
        number = int(key[-2:])
        assert (batch.images[row] == number + 1).all()
        assert (batch.masks["seg.png"][row] == number + 2).all()
        assert (batch.extra_images["second"][row] == number).all()
        assert (batch.extra_images["right.png"][row][..., 2] == 200).all()
        assert batch.labels[row] == number
        assert batch.fields["drawn"][row][1] == batch.indices[row]
        boxes = batch.boxes[batch.offsets[row] : batch.offsets[row + 1]]
        assert len(boxes) == min(1, number % 3)
        assert len(wanted) == 0
    assert batch.targets()[0]["labels"].shape == (batch.offsets[1],)


def test_masks_that_a_function_does_not_return_stay_those_of_their_samples(marked):
    with loader_of(marked, functions.inverted, batch_size=2, masks=["seg.png"]) as loader:
        kept = list(loader)
    for batch in kept:
        for row, key in enumerate(batch.keys):
            assert (batch.masks["seg.png"][row] == int(key[-2:])).all()


def test_batches_that_are_kept_stay_as_they_are(small):
    with loader_of(small, functions.noisy) as loader:
        kept = []
        crcs = []
        for batch in loader:
            kept.append(batch)
            crcs.append(seen(batch)["rows"])
        assert [seen(batch)["rows"] for batch in kept] == crcs


@pytest.mark.parametrize("reuse", [False, True])
def test_loops_that_are_left_early_use_the_same_memory_again(small, reuse):
    with loader_of(small, functions.inverted, reuse=reuse) as loader:
        sizes = []
        for _ in range(4):
            next(iter(loader))
            sizes.append(os.fstat(loader._python.pool().memory.descriptor).st_size)
    assert sizes == [sizes[0]] * 4


def test_a_loop_that_uses_one_batch_after_the_other_uses_the_same_memory_again(small):
    with loader_of(small, functions.inverted) as loader:
        for _ in range(2):
            for batch in loader:
                del batch
        size = os.fstat(loader._python.pool().memory.descriptor).st_size
    assert size < 8 * 16 * 32 * 32 * 3


def test_a_loop_that_was_left_does_not_disturb_the_next(small):
    with loader_of(small, functions.noisy) as loader:
        for batch in loader:
            if batch.batch_index == 1:
                break
        loader.set_epoch(0)
        again = rows(loader)
    with loader_of(small, functions.noisy) as loader:
        assert rows(loader) == again


def test_a_sample_at_which_the_function_raises_is_a_bad_sample_with_its_key(small):
    with loader_of(small, functions.raises) as loader, pytest.raises(shardtool.BadSampleError) as raised:
        list(loader)
    assert raised.value.key.endswith("7")
    assert f"raised ValueError: no luck with {raised.value.key}" in str(raised.value)
    assert 'raise ValueError(f"no luck with {key}")' in str(raised.value)


def test_an_exception_without_a_text_does_not_end_the_worker(small):
    class Wordless(Exception):
        def __str__(self):
            raise ValueError("no text")

    def raises(image):
        raise Wordless

    with loader_of(small, raises) as loader, pytest.raises(shardtool.BadSampleError, match=r"raised Wordless\. Fix"):
        list(loader)


def test_samples_at_which_the_function_raises_are_skipped_and_reported(small):
    with loader_of(small, functions.raises, on_bad="skip") as loader:
        batches = list(loader)
        report = loader.report()
    bad = {key for batch in batches for key, valid in zip(batch.keys, batch.valid) if not valid}
    assert bad == {f"{'ab'[number % 2]}/{number:04}" for number in range(7, 200, 10)}
    assert {sample["key"] for sample in report["bad_samples"]} == bad
    assert report["bad"] == 20
    assert all((image == 0).all() for batch in batches for image, valid in zip(batch.images, batch.valid) if not valid)
    with loader_of(small, functions.noisy) as loader:
        assert lines([seen(batch) for batch in batches]) == [
            row for row in lines(map(seen, loader)) if row[1] not in bad
        ]


def test_batches_of_buckets_have_the_sizes_of_their_images(tmp_path):
    for number in range(48):
        file = tmp_path / "images" / "a" / f"{number:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", [(64, 64), (96, 48), (48, 96)][number % 3], (number, number, number)).save(file)
    location = pack(tmp_path / "images", tmp_path / "shards")
    with loader_of(location, lambda image: image, batch_size=4, aspect_buckets={"area": 64 * 64, "step": 16}) as loader:
        batches = list(loader)
    assert len({batch.images.shape[1:] for batch in batches}) == 3
    for batch in batches:
        assert [int(image.max()) for image in batch.images] == [int(key[-2:]) for key in batch.keys]


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        (lambda odd: {"boxes": np.zeros((2, 4)), "box_labels": np.zeros(1 + odd)}, "2 boxes and 1 box_labels"),
        (lambda odd: {"boxes": np.zeros((2, 4))} if odd else {}, "returned .* and .* for another sample of its batch"),
        (lambda odd: {"boxes": np.zeros((1, 4 + odd))}, r"boxes of shapes \[n, 4\] and \[n, 5\]"),
        (lambda _: {"boxes": [print]}, "it returned list as boxes"),
    ],
)
def test_objects_that_do_not_belong_together_are_an_error(small, objects, message):
    with (
        loader_of(small, lambda image, index: {"image": image, **objects(index % 2)}) as loader,
        pytest.raises(shardtool.PythonTransformError, match=message),
    ):
        next(iter(loader))


def test_polygons_do_not_stay_with_boxes_that_a_function_has_chosen(tmp_path):
    (tmp_path / "images" / "a").mkdir(parents=True)
    Image.new("RGB", (16, 12)).save(tmp_path / "images" / "a" / "0.png")
    text = {"boxes": [[1, 2, 3, 4], [2, 2, 3, 4]], "polygons": [[[1, 2, 4, 2, 4, 6]], [[2, 2, 5, 2, 5, 6]]]}
    (tmp_path / "images" / "a" / "0.json").write_text(json.dumps(text))
    location = pack(tmp_path / "images", tmp_path / "shards", "--fields", "json")
    annotations = {
        "boxes": {"field": "json", "path": "boxes", "format": "xywh"},
        "polygons": {"field": "json", "path": "polygons"},
    }
    with loader_of(
        location, lambda image, boxes: {"image": image, "boxes": boxes[1:]}, batch_size=1, annotations=annotations
    ) as loader:
        (batch,) = loader
    (target,) = batch.targets()
    assert list(target) == ["boxes"]
    assert target["boxes"].tolist() == [[2, 2, 5, 6]]


def test_workers_that_die_before_they_call_the_function_are_an_error(small, monkeypatch):
    monkeypatch.setattr(worker.Worker, "_outputs", lambda *_: os._exit(3))
    with (
        loader_of(small, functions.inverted) as loader,
        pytest.raises(shardtool.PythonTransformError, match=r"3 workers of python_transform ended.*exit status 3"),
    ):
        next(iter(loader))


def test_a_worker_whose_child_outlives_it_is_replaced(small, tmp_path, monkeypatch):
    monkeypatch.setenv(functions.MARKS, str(tmp_path))
    with loader_of(small, functions.killed_with_a_child) as loader:
        assert len(rows(loader)) == 200
        assert loader.report()["python_workers_replaced"] == 1
    (child,) = tmp_path.glob("child-*")
    os.kill(int(child.name.partition("-")[2]), signal.SIGKILL)


def test_a_worker_that_is_terminated_does_not_run_the_handler_of_the_program(small, tmp_path):
    before = signal.signal(signal.SIGTERM, lambda *_: (tmp_path / "handled").touch())
    try:
        with loader_of(small, functions.inverted) as loader:
            loop = iter(loader)
            next(loop)
            terminated = loader._python.pool()._running()
            for process in terminated:
                os.kill(process.process.pid, signal.SIGTERM)
            assert sum(1 for _ in loop) == 12
            assert loader.report()["python_workers_replaced"] == len(terminated) == 2
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not (tmp_path / "handled").exists()


def test_a_worker_that_is_killed_is_replaced_and_nothing_is_lost(small, tmp_path, monkeypatch):
    monkeypatch.setenv(functions.MARKS, str(tmp_path))
    with loader_of(small, functions.noisy) as loader:
        expected = rows(loader)
    with loader_of(small, functions.killed_at_times) as loader:
        assert rows(loader) == expected
        assert loader.report()["python_workers_replaced"] == len(list(tmp_path.iterdir())) > 5


def test_a_sample_that_kills_its_workers_is_a_bad_sample(small):
    with loader_of(small, functions.killed_always) as loader, pytest.raises(shardtool.BadSampleError) as raised:
        list(loader)
    assert raised.value.key == "b/0001"
    assert "was ended by SIGKILL" in str(raised.value)
    with loader_of(small, functions.killed_always, on_bad="skip") as loader:
        assert sum(int(batch.valid.sum()) for batch in loader) == 199


def test_a_sample_that_takes_too_long_is_a_bad_sample(small):
    with loader_of(small, functions.hangs, python_timeout=0.5, on_bad="skip") as loader:
        assert sum(int(batch.valid.sum()) for batch in loader) == 199
        (bad,) = loader.report()["bad_samples"]
    assert bad["key"] == "b/0001"
    assert "took longer than python_timeout=0.5 seconds" in bad["reason"]


def test_a_result_of_another_shape_is_an_error_that_names_both(small):
    with (
        loader_of(small, functions.of_other_shapes, on_bad="skip") as loader,
        pytest.raises(shardtool.PythonTransformError, match=r"sample 'b/0001'.*\[16, 32, 3\].*\[32, 32, 3\]"),
    ):
        list(loader)


def test_the_error_for_another_dtype_does_not_ask_for_a_resize(small):
    def mixed(image, index):
        return image.astype(np.float32) if index == 9 else image

    with (
        loader_of(small, mixed) as loader,
        pytest.raises(shardtool.PythonTransformError, match=r"must have one shape and dtype\.$"),
    ):
        list(loader)


def test_a_result_that_is_no_array_is_an_error(small):
    with (
        loader_of(small, lambda image: "text") as loader,
        pytest.raises(shardtool.PythonTransformError, match="it returned str as image"),
    ):
        list(loader)
    with (
        loader_of(small, lambda image: {"img": image}) as loader,
        pytest.raises(shardtool.PythonTransformError, match="a dictionary without 'image': img"),
    ):
        list(loader)


def test_a_local_function_cannot_be_spawned_and_the_error_says_what_to_do(small):
    with (
        loader_of(small, lambda image: image, python_start_method="spawn") as loader,
        pytest.raises(shardtool.OptionError, match=r"<lambda> cannot be sent.*top level of a module"),
    ):
        next(iter(loader))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"function": 3}, "must be a function that takes an image"),
        ({"function": lambda image, foo: image}, "parameter 'foo'"),
        ({"python_workers": 0}, "python_workers must be a whole number of at least 1"),
        ({"python_timeout": 0}, "python_timeout must be a number of seconds"),
        ({"python_start_method": "clone"}, "python_start_method must be one of"),
        ({"mix": {"name": "mixup", "alpha": 1}}, "mix would be applied before"),
        ({"collate": "list"}, "decoded images of one size"),
        ({"function": None}, "need python_transform"),
    ],
)
def test_options_that_cannot_be_combined_are_rejected(small, options, message):
    given = {"function": functions.inverted, **options}
    with pytest.raises(shardtool.OptionError, match=message):
        loader_of(small, **given)


def test_a_transform_that_makes_floats_is_rejected(small):
    with (
        loader_of(small, functions.inverted, transform=[{"name": "to_dtype", "dtype": "float32"}]) as loader,
        pytest.raises(shardtool.OptionError, match="python_transform takes uint8 images"),
    ):
        list(loader)


def test_a_loader_that_is_closed_leaves_no_worker_behind(small):
    before = set(children())
    loader = loader_of(small, functions.inverted)
    loop = iter(loader)
    next(loop)
    assert len(set(children()) - before) >= 2
    loader.close()
    with pytest.raises(shardtool.StaleIteratorError):
        next(loop)
    workers = loader_of(small, functions.inverted)
    next(iter(workers))
    del workers
    gc.collect()
    assert not any("python" in Path(f"/proc/{child}/exe").resolve().name for child in set(children()) - before)


def test_another_thread_may_close_the_loader_while_its_workers_hang(small):
    loader = loader_of(small, functions.hangs)
    timer = threading.Timer(1, loader.close)
    timer.start()
    with pytest.raises(shardtool.StaleIteratorError):
        list(loader)
    timer.join()


def test_a_handler_of_a_signal_may_close_the_loader_while_its_workers_are_busy(small):
    """The function sends the signal at each image, so it arrives while the loop waits for the first result."""
    loader = loader_of(small, functions.signals_its_parent)
    before = signal.signal(signal.SIGUSR1, lambda *_: loader.close())
    try:
        with pytest.raises(shardtool.StaleIteratorError):
            list(loader)
    finally:
        signal.signal(signal.SIGUSR1, before)


PROGRAM = """
import os, signal, sys, threading, time
sys.path.insert(0, "python/tests")
import python_functions, shardtool

if __name__ == "__main__":
    location, method, end = sys.argv[1:]
    loader = shardtool.Loader(
        location, batch_size=4, output="numpy", python_transform=python_functions.noisy, python_workers=2, workers=1,
        python_start_method=method, epochs_per_loop=float("inf"),
    )
    try:
        for number, batch in enumerate(loader):
            if number == 3:
                print(*(worker.process.pid for worker in loader._python.pool()._running()), flush=True)
                if end == "interrupt":
                    os.kill(os.getpid(), signal.SIGINT)
                elif end == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                else:
                    break
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.parametrize("end", ["interrupt", "kill", "leave"])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_program_that_ends_in_any_way_leaves_no_worker_behind(small, tmp_path, method, end):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    started = subprocess.run(
        [sys.executable, program, small, method, end],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "python" / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert started.returncode == (-signal.SIGKILL if end == "kill" else 0), started.stderr
    assert "Traceback" not in started.stderr
    pids, *more = started.stdout.splitlines()
    assert more == (["interrupted"] if end == "interrupt" else [])
    # A worker without a parent checks for it every second.
    for pid in pids.split():
        ended = threading.Event()
        for _ in range(100):
            if not Path(f"/proc/{pid}").exists():
                ended.set()
                break
            ended.wait(0.05)
        assert ended.is_set()
