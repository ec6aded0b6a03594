"""The table "Names in other libraries" of docs/recipes.md: its names exist, and exact steps give the same bytes."""

import inspect
import re

import numpy as np
import pytest
from PIL import Image

import shardtool
from datasets import CHECKOUT, pack

v2 = pytest.importorskip("torchvision.transforms.v2")
timm_data = pytest.importorskip("timm.data")
open_clip = pytest.importorskip("open_clip")
A = pytest.importorskip("albumentations")
albumentations_torch = pytest.importorskip("albumentations.pytorch")

pytestmark = pytest.mark.usefixtures("lent_readers")

#: Names of the third column that are options of the loader.
OPTIONS = {"views", "mix", "python_transform"}


def rows():
    """The code of the three columns of each row of the table."""
    page = (CHECKOUT / "docs/recipes.md").read_text()
    table = page.split("## Names in other libraries")[1]
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    return [[re.findall(r"`([^`]+)`", column) for column in line.strip("|").split("|")] for line in lines]


def words(codes):
    """The names at the start of pieces of code. A quoted value belongs to the piece before it."""
    return [re.match(r"\w+", code)[0] for code in codes if code[0] != "'"]


def step_names():
    return set(re.findall(r"^### (\w+)$", (CHECKOUT / "docs/transforms.md").read_text(), re.MULTILINE))


def test_the_table_has_all_rows():
    assert len(rows()) > 20


@pytest.mark.parametrize("row", rows(), ids=lambda row: "-".join(words(row[0] + row[1])))
def test_names_of_the_table_exist_and_lead_to_steps_that_exist(row):
    torchvision_names, other_names, own = row
    for name in words(torchvision_names):
        assert hasattr(v2, name), name
    places = [A, albumentations_torch, timm_data, timm_data.transforms, open_clip.transform]
    parameters = inspect.signature(timm_data.create_transform).parameters
    for name in words(other_names):
        assert name in parameters or any(hasattr(place, name) for place in places), name
    steps = step_names()
    # A step comes before the parameters that a row gives it.
    known = [name for name in words(own) if name in steps or name in OPTIONS]
    if not known:
        assert "the same names" in (CHECKOUT / "docs/recipes.md").read_text()
        known = [name[0].lower() + name[1:] for name in words(torchvision_names)]
    assert set(known) <= steps | OPTIONS
    snake = re.sub(r"([A-Z])", lambda letter: "_" + letter[0].lower(), known[0])
    assert known[0] in OPTIONS or shardtool.steps_from([{"name": snake}])


#: By step: the transforms of albumentations that give the same bytes.
EQUAL = [
    ({"name": "random_horizontal_flip", "p": 1}, lambda: A.HorizontalFlip(p=1)),
    ({"name": "random_vertical_flip", "p": 1}, lambda: A.VerticalFlip(p=1)),
    ({"name": "center_crop", "size": [40, 30]}, lambda: A.CenterCrop(40, 30)),
    ({"name": "pad", "padding": 3, "fill": 7}, lambda: A.Pad(3, fill=7, p=1)),
    ({"name": "random_invert", "p": 1}, lambda: A.InvertImg(p=1)),
    ({"name": "random_solarize", "threshold": 128, "p": 1}, lambda: A.Solarize((128 / 255, 128 / 255), p=1)),
    ({"name": "random_posterize", "bits": 3, "p": 1}, lambda: A.Posterize((3, 3), p=1)),
]


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Parts of photos, by key."""
    folder = tmp_path_factory.mktemp("names")
    for number, photo in enumerate(sorted((CHECKOUT / "examples/photos").rglob("*.jpg"))[:6]):
        file = folder / "a" / f"{number}.png"
        file.parent.mkdir(exist_ok=True)
        Image.open(photo).convert("RGB").crop((10, 20, 90, 84)).save(file)
    stored = {f"a/{file.stem}": np.array(Image.open(file)) for file in (folder / "a").iterdir()}
    return pack(folder, tmp_path_factory.mktemp("shards") / "shards"), stored


@pytest.mark.parametrize(("step", "original"), EQUAL, ids=lambda one: one["name"] if isinstance(one, dict) else "")
def test_a_step_gives_the_bytes_of_albumentations(images, step, original):
    shards, stored = images
    transform = original()
    with shardtool.Loader(shards, transform=[step], batch_size=6, output="numpy", with_keys=True) as loader:
        [batch] = list(loader)
    assert len(batch.keys) == 6
    for key, image in zip(batch.keys, batch.images):
        np.testing.assert_array_equal(image, transform(image=stored[key])["image"])


def test_normalize_and_to_dtype_give_the_floats_of_albumentations(images):
    shards, stored = images
    steps = [
        {"name": "to_dtype", "dtype": "float32", "scale": True},
        {"name": "normalize", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]},
    ]
    pipeline = A.Compose([A.Normalize(), albumentations_torch.ToTensorV2()])
    with shardtool.Loader(shards, transform=steps, batch_size=6, with_keys=True) as loader:
        [batch] = list(loader)
    for key, image in zip(batch.keys, batch.images):
        np.testing.assert_allclose(image.numpy(), pipeline(image=stored[key])["image"].numpy(), atol=1e-6)
