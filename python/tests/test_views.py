"""Several views of each image, against Pillow and against the reported draws."""

import gc

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

import shardtool
from datasets import CHECKOUT, pack

pytestmark = pytest.mark.usefixtures("lent_readers")

PHOTOS = CHECKOUT / "examples" / "photos"
FLIP = {"name": "RandomHorizontalFlip"}
VIEWS = {
    "global": {"count": 2, "transform": [{"name": "random_resized_crop", "size": 48, "scale": (0.3, 1)}, FLIP]},
    "local": {
        "count": 3,
        "transform": [
            {"name": "RandomResizedCrop", "size": 24, "scale": (0.05, 0.3)},
            FLIP,
            {"name": "normalize", "mean": [0.5, 0.5, 0.5], "std": [0.2, 0.2, 0.2]},
        ],
    },
}
DRAWS = ["RandomResizedCrop", "random_horizontal_flip"]


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return pack(PHOTOS, tmp_path_factory.mktemp("views") / "shards")


def pixels(key, draws, row, size):
    """The view of a photo that Pillow makes with these draws."""
    [file] = PHOTOS.glob(f"{key}.*")
    x, y, width, height = draws["randomResizedCrop"][row].tolist()
    with Image.open(file) as photo:
        view = photo.convert("RGB").crop((x, y, x + width, y + height)).resize((size, size), Image.BILINEAR)
    if draws["randomHorizontalFlip"][row]:
        view = view.transpose(Image.FLIP_LEFT_RIGHT)
    return np.asarray(view).astype(np.float32)


def test_each_view_equals_that_of_pillow_with_the_same_crop_and_flip(shards):
    rows = 0
    with shardtool.Loader(shards, views=VIEWS, draws=DRAWS, batch_size=16, decode="exact", with_keys=True) as loader:
        for batch in loader:
            images, _, keys = batch
            assert batch.views["global"][0] is images
            assert [tuple(view.shape) for view in batch.views["local"]] == [(len(keys), 3, 24, 24)] * 3
            for name, size in (("global", 48), ("local", 24)):
                for view, draws in zip(batch.views[name], batch.draws[name]):
                    assert view.dtype == (torch.uint8 if name == "global" else torch.float32)
                    for row, key in enumerate(keys):
                        found = view[row].permute(1, 2, 0).numpy()
                        if name == "local":
                            found = (found * 0.2 + 0.5) * 255
                        assert np.abs(found - pixels(key, draws, row, size)).max() < 2.01
                        rows += 1
    assert rows == 60 * 5


def test_any_number_of_kept_batches_stays_unchanged(shards):
    options = {"views": VIEWS, "batch_size": 4, "seed": 2, "prefetch_batches": 2}

    def copied(batch):
        return {name: [view.clone() for view in group] for name, group in batch.views.items()}

    with shardtool.Loader(shards, **options) as loader:
        expected = [copied(batch) for batch in loader]
    for kept in (1, 2, 3, 15):
        held = []
        with shardtool.Loader(shards, **options) as loader:
            for number, batch in enumerate(loader):
                # Only one view of this batch is kept, and only another view of the next one.
                held.append(
                    (number, batch.views["local"][2], batch.views["global"][1]) if number % 2 else (number, batch)
                )
                held = held[-kept:]
                for at, *parts in held:
                    if len(parts) == 2:
                        assert torch.equal(parts[0], expected[at]["local"][2])
                        assert torch.equal(parts[1], expected[at]["global"][1])
                    else:
                        for name, group in parts[0].views.items():
                            assert all(torch.equal(*pair) for pair in zip(group, expected[at][name]))
            del batch
        gc.collect()


def test_a_dataloader_and_a_state_have_the_same_views(shards):
    options = {"views": VIEWS, "draws": DRAWS, "batch_size": 8, "seed": 4}
    with shardtool.Loader(shards, **options) as loader:
        expected = [batch.views["local"][1].clone() for batch in loader]
    dataset = shardtool.iterable_dataset(shards, **options)
    for number, batch in enumerate(DataLoader(dataset, batch_size=None)):
        assert torch.equal(batch.views["local"][1], expected[number])
    dataset.close()
    with shardtool.Loader(shards, **options) as loader:
        loop = iter(loader)
        next(loop)
        next(loop)
        state = loader.state_dict()
        loader.load_state_dict(state)
        rest = [batch.views["local"][1].clone() for batch in loader]
    assert len(rest) == len(expected) - 2
    assert all(torch.equal(*pair) for pair in zip(rest, expected[2:]))


@pytest.mark.parametrize("output", ["numpy", "dlpack"])
def test_views_come_as_the_arrays_that_output_names(shards, output):
    with shardtool.Loader(shards, views=VIEWS, batch_size=4, output=output) as loader:
        batch = next(iter(loader))
        assert [view.shape for view in batch.views["global"]] == [(4, 48, 48, 3)] * 2
        assert [view.shape for view in batch.views["local"]] == [(4, 3, 24, 24)] * 3


def test_python_transform_is_rejected(shards):
    with pytest.raises(shardtool.OptionError, match="python_transform takes one image of each sample"):
        shardtool.Loader(shards, views=VIEWS, python_transform=lambda image: image)


def test_a_list_of_names_is_not_a_name(shards):
    with pytest.raises(TypeError, match=r"draws must be a list, such as \['randomCrop'\]"):
        shardtool.Loader(shards, views=VIEWS, draws="randomCrop")


def sized(size):
    return [{"name": "RandomResizedCrop", "size": size}, FLIP]


def epoch_of(shards, epoch, size):
    with shardtool.Loader(shards, transform=sized(size), batch_size=7, seed=1, epoch=epoch) as loader:
        return [batch.images.clone() for batch in loader]


@pytest.mark.parametrize("kept", [1, 3, 9])
def test_set_epoch_takes_another_size_and_batches_that_are_kept_stay_as_they_were(shards, kept):
    sizes = [16, 40, 24, 24, 64, 16]
    expected = [epoch_of(shards, epoch, size) for epoch, size in enumerate(sizes)]
    held, readers = [], set()
    with shardtool.Loader(shards, transform=sized(16), batch_size=7, seed=1) as loader:
        for epoch, size in enumerate(sizes):
            loader.set_epoch(epoch, transform=sized(size))
            for number, batch in enumerate(loader):
                held.append((batch.images, expected[epoch][number]))
                held = held[-kept:]
                assert all(torch.equal(*pair) for pair in held)
            readers.add(loader._reader)
    assert len(readers) == 1


def test_a_schedule_and_its_state(shards):
    schedule = [{"epoch": 1, "transform": sized(40)}]
    options = {"transform": sized(16), "batch_size": 7, "seed": 1}
    expected = [*epoch_of(shards, 0, 16), *epoch_of(shards, 1, 40)]
    with shardtool.Loader(shards, **options, schedule=schedule, epochs_per_loop=2) as loader:
        batches = [batch.images.clone() for batch in loader]
        assert all(torch.equal(*pair) for pair in zip(batches, expected))
        loop = iter(loader)
        with pytest.raises(shardtool.OptionError, match="schedule sets the transform of every epoch"):
            loader.set_epoch(1, transform=sized(24))
        del loop
    with shardtool.Loader(shards, **options) as loader:
        loader.set_epoch(1, transform=sized(40))
        loop = iter(loader)
        next(loop), next(loop)
        state = loader.state_dict()
    assert state["transform"][0]["size"] == 40
    with shardtool.Loader(shards, **options) as loader:
        loader.load_state_dict(state)
        rest = [batch.images.clone() for batch in loader]
        following = next(iter(loader))
    assert len(rest) == 7
    assert all(torch.equal(*pair) for pair in zip(rest, expected[9 + 2 :]))
    assert following.images.shape[-1] == 40


def test_a_dataloader_takes_the_transform_of_an_epoch(shards):
    dataset = shardtool.iterable_dataset(shards, transform=sized(16), batch_size=7, seed=1)
    for epoch, size in enumerate([16, 40, 24]):
        dataset.set_epoch(epoch, transform=sized(size))
        # A list holds all of them at the same time.
        batches = list(DataLoader(dataset, batch_size=None))
        assert all(torch.equal(batch.images, images) for batch, images in zip(batches, epoch_of(shards, epoch, size)))
    dataset.close()


def test_ten_crops_are_those_of_torchvision(shards):
    transforms = pytest.importorskip("torchvision.transforms")
    resize = {"name": "Resize", "size": 64}
    names = ("topLeft", "topRight", "bottomLeft", "bottomRight")
    crops = [{"name": "corner_crop", "size": [56, 40], "corner": name} for name in names]
    crops.append({"name": "CenterCrop", "size": [56, 40]})
    mirror = {"name": "RandomHorizontalFlip", "p": 1}
    ten = [{"transform": [resize, *more, crop]} for more in ([], [mirror]) for crop in crops]
    options = {"batch_size": 20, "shuffle": False, "decode": "exact", "with_keys": True, "samples_per_epoch": 20}
    with (
        shardtool.Loader(shards, transform=[resize], collate="list", **options) as whole,
        shardtool.Loader(shards, views={"crops": ten}, **options) as loader,
    ):
        (resized,), (batch,) = list(whole), list(loader)
    assert resized.keys == batch.keys
    for row, image in enumerate(resized.images):
        want = transforms.TenCrop((56, 40))(image)
        for view in range(10):
            assert torch.equal(batch.views["crops"][view][row], want[view])
