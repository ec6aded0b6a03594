"""Batches equal those of the TypeScript loader."""

from enum import Enum

import numpy as np
import pytest
import torch

import shardtool
from datasets import of_referee, pack, seen, small_images, typescript_batches
from shardtool.bridge.for_reader import options_for_reader

pytestmark = pytest.mark.usefixtures("lent_readers")


class InterpolationMode(Enum):
    """Like torchvision's, as far as these tests need it."""

    BILINEAR = "bilinear"


NORMALISED = [
    {"name": "randomResizedCrop", "size": [48, 64]},
    {"name": "randomHorizontalFlip"},
    {"name": "normalize", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]},
]
SNAKE_CASE = [
    {"name": "Resize", "size": 40, "max_size": 90},
    {"name": "random_crop", "size": 48, "pad_if_needed": True},
    {"name": "random_rotation", "degrees": 5, "interpolation": InterpolationMode.BILINEAR},
    {"name": "ToDtype", "dtype": torch.float32, "scale": True},
    {"name": "layout", "layout": "nchw"},
]
CAMEL_CASE = [
    {"name": "resize", "size": 40, "maxSize": 90},
    {"name": "randomCrop", "size": 48, "padIfNeeded": True},
    {"name": "randomRotation", "degrees": 5, "interpolation": "bilinear"},
    {"name": "toDtype", "dtype": "float32", "scale": True},
    {"name": "layout", "layout": "nchw"},
]


TRANSFORMS = {
    "train224": ({"transform": "train224", "workers": 2}, {"transform": "train224"}),
    "eval224": ({"transform": "eval224", "shuffle": False}, {"transform": "eval224", "shuffle": False}),
    "float32": ({"transform": NORMALISED}, {"transform": NORMALISED}),
    "nchw": ({"transform": SNAKE_CASE}, {"transform": CAMEL_CASE}),
    "raw": ({"transform": "raw"}, {"transform": "raw"}),
    "list": ({"transform": [], "collate": "list"}, {"transform": [], "collate": "list"}),
}
CHOICES = {
    "classes": ["cat", 2, "moon"],
    "where": "width >= 300",
    "weights": {"cat": 2, "moon": 3},
    "samplesPerEpoch": 30,
    "seed": 3,
}


@pytest.fixture(scope="module")
def referee(photos):
    """The batches of the TypeScript loader, all from one process."""
    options = {name: {"batchSize": 16, "seed": 42, **of_referee} for name, (_, of_referee) in TRANSFORMS.items()}
    options["choices"] = {"transform": "eval224", "batchSize": 8, **CHOICES}
    return dict(zip(options, typescript_batches(photos, *options.values(), epochs=2)))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_images_shapes_labels_keys_and_order_are_those_of_the_typescript_loader(photos, referee, name):
    options, _ = TRANSFORMS[name]
    # Order and draws of a second epoch are the same for all transforms.
    epochs = 2 if name == "train224" else 1
    loader = shardtool.Loader(photos, batch_size=16, seed=42, output="numpy", with_keys=True, **options)
    with loader:
        batches = [(seen(batch), getattr(batch.images, "shape", None)) for _ in range(epochs) for batch in loader]
    expected = [batch for batch in referee[name] if batch["epoch"] < epochs]
    assert [batch for batch, _ in batches] == of_referee(expected)
    assert [shape and list(shape) for _, shape in batches] == [batch.get("shape") for batch in expected]


def test_choices_weights_and_columns_reach_the_reader(photos, referee):
    with shardtool.Loader(
        photos,
        transform="eval224",
        batch_size=8,
        output="numpy",
        with_keys=True,
        classes=("cat", 2, "moon"),
        where="width >= 300",
        weights={"cat": 2, "moon": 3},
        samples_per_epoch=30,
        seed=3,
    ) as loader:
        batches = [seen(batch) for batch in loader]
    assert batches == [batch for batch in of_referee(referee["choices"]) if batch["epoch"] == 0]


def test_arrays_weigh_single_samples_and_order_them(small):
    def keys_of(**choice):
        with shardtool.Loader(small, transform="raw", output="numpy", with_keys=True, **choice) as loader:
            return [key for batch in loader for key in batch.keys]

    keys = keys_of(shuffle=False)
    order = np.random.default_rng(1).integers(0, len(keys), 300)
    in_order = [keys[number] for number in order]
    assert keys_of(indices=order) == in_order
    for given in (order, order.astype(np.int32), order.tolist(), range(5)):
        assert options_for_reader({"indices": given}, slots_in_use=0)["indices"] == list(given)
    assert keys_of(indices=order, rank=1, world_size=2, last_batch="partial") == in_order[1::2]

    groups = order.reshape(100, 3)
    for given in (groups, groups.tolist(), torch.from_numpy(groups)):
        ranks = [keys_of(indices=given, batch_size=12, rank=rank, world_size=2) for rank in range(2)]
        # 100 groups are 50 for each rank, in batches of four: the last one is padded.
        found = [[of[row : row + 3] for row in range(0, 150, 3)] for of in ranks]
        assert found == [[[keys[number] for number in group] for group in groups[rank::2]] for rank in range(2)]
    with pytest.raises(TypeError, match="whole numbers, or of groups of one size"):
        keys_of(indices=[[1, 2], [3]])
    weights = np.zeros(len(keys), dtype=np.float32)
    weights[[3, 70]] = 2
    assert sorted(keys_of(weights=weights)) == sorted([keys[3], keys[70]])
    assert sorted(keys_of(weights=weights, samples_per_epoch=4)) == sorted([keys[3], keys[70]] * 2)
    for given in (weights, weights.tolist()):
        assert options_for_reader({"weights": given}, slots_in_use=0)["weights"] == weights.tolist()
    with pytest.raises(shardtool.OptionError, match="weights has 2 numbers, but the dataset has 200 samples"):
        keys_of(weights=[1, 1])


def test_an_int_is_a_class_number_and_a_str_a_name(tmp_path):
    """Classes named by numbers: "10" is number 0, "11" number 1, "9" is number 11."""
    names = sorted(["9", *(str(number) for number in range(10, 21))])
    small_images(tmp_path / "images", 24, classes=names)
    shards = pack(tmp_path / "images", tmp_path / "shards")

    def classes_of(**choice):
        with shardtool.Loader(shards, output="numpy", with_keys=True, **choice) as loader:
            return sorted(key.split("/")[0] for batch in loader for key in batch.keys)

    assert classes_of(classes=["10", 10, np.int64(1)]) == ["10", "10", "11", "11", names[10], names[10]]
    weights = {name: 0 for name in names if name not in ("10", names[10])}
    assert classes_of(weights={**weights, "10": 1, 10: 2}, samples_per_epoch=6) == ["10"] * 2 + [names[10]] * 4
    with pytest.raises(shardtool.OptionError, match="given twice"):
        classes_of(weights={"10": 1, 0: 2})
    with pytest.raises(TypeError, match="a class must be a str"):
        classes_of(weights={1.5: 1})
    with pytest.raises(TypeError, match="classes must be a list"):
        classes_of(classes="10")


def test_fields_come_as_python_values(small):
    with shardtool.Loader(small, batch_size=50, fields=["json", "jpg"], with_keys=True, output="numpy") as loader:
        for batch in loader:
            numbers = [int(key.split("/")[1]) for key in batch.keys]
            assert [value["number"] for value in batch.fields["json"]] == numbers
            assert all(value[:2] == b"\xff\xd8" for value in batch.fields["jpg"])


def test_a_padded_last_batch_marks_the_valid_rows(small):
    with shardtool.Loader(small, batch_size=64, last_batch="pad", output="numpy") as loader:
        batches = [(len(images), int(batch.valid.sum())) for batch in loader for images in [batch.images]]
    assert batches == [(64, 64), (64, 64), (64, 64), (64, 8)]


def test_several_epochs_in_one_loop(small):
    with shardtool.Loader(small, batch_size=100, epochs_per_loop=3, output="numpy") as loader:
        assert len(loader) == 6
        assert [batch.epoch for batch in loader] == [0, 0, 1, 1, 2, 2]
        assert [batch.epoch for batch in loader] == [3, 3, 4, 4, 5, 5]


def test_a_list_of_tars_and_a_relative_folder_are_locations(small, monkeypatch):
    monkeypatch.chdir(small.parent)
    tars = sorted(file.relative_to(small.parent) for file in small.glob("*.tar"))
    relative, listed = shardtool.Loader("shards", output="numpy"), shardtool.Loader(tars, output="numpy")
    monkeypatch.chdir("/")
    with relative, listed:
        assert relative.num_samples == listed.num_samples == 200
        assert relative.classes == ["a", "b"]


def test_columns_of_numbers_come_as_arrays(tmp_path):
    small_images(tmp_path / "images", 6)
    scores = ["0.5", "inf", "", "nan", "-2", "3"]
    rows = [f"{'ab'[n % 2]}/{n:04}.jpg,{n + 10},{scores[n]},{'' if n == 2 else n}" for n in range(6)]
    (tmp_path / "labels.csv").write_text("\n".join(["path,count,score,views", *rows]))
    shards = pack(tmp_path / "images", tmp_path / "shards", "--labels", tmp_path / "labels.csv")
    names = ["count", "score", "views", "cls"]
    for output in ("torch", "numpy"):
        with shardtool.Loader(shards, fields=names, batch_size=6, output=output, with_keys=True) as loader:
            (batch,) = loader
        fields = {name: np.asarray(values) for name, values in batch.fields.items()}
        if output == "torch":
            assert all(isinstance(values, torch.Tensor) for values in batch.fields.values())
        assert [fields[name].dtype for name in names] == [np.int64, np.float64, np.float64, np.int64]
        places = np.argsort(batch.keys)
        assert fields["count"][places].tolist() == [10, 12, 14, 11, 13, 15]
        np.testing.assert_array_equal(fields["score"][places], [0.5, np.nan, -2, np.inf, np.nan, 3])
        np.testing.assert_array_equal(fields["views"][places], [0, np.nan, 4, 1, 3, 5])
        assert fields["cls"].tolist() == np.asarray(batch.labels).tolist()
    dataset = shardtool.Dataset(shards, fields=["score"])
    assert [dataset[f"{key}"].fields["score"] for key in ("a/0000", "b/0001", "a/0002")] == [0.5, float("inf"), None]
    assert dataset.raw("b/0001")["score"] == float("inf")
    dataset.close()


def test_columns_of_the_labels_come_as_fields(tmp_path):
    small_images(tmp_path / "images", 6)
    rows = [f"{'ab'[n % 2]}/{n:04}.jpg,{'' if n == 2 else f'caption {n}'},{n / 2}" for n in range(6)]
    (tmp_path / "labels.csv").write_text("\n".join(["path,caption,score", *rows]))
    shards = pack(tmp_path / "images", tmp_path / "shards", "--labels", tmp_path / "labels.csv")
    options = {"batch_size": 6, "output": "numpy", "with_keys": True}
    with shardtool.Loader(shards, fields=["caption", "score"], **options) as loader:
        (batch,) = loader
        numbers = [int(key.split("/")[1]) for key in batch.keys]
        assert batch.fields["caption"] == [None if n == 2 else f"caption {n}" for n in numbers]
        assert batch.fields["score"].tolist() == [n / 2 for n in numbers]
    with pytest.raises(shardtool.OptionError, match='"captoin"; did you mean "caption"'):
        next(iter(shardtool.Loader(shards, fields=["captoin"], **options)))
