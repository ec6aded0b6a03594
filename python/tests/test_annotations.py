"""Annotations: boxes, labels, keypoints and polygons that move with the pixels."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

import shardtool
from datasets import pack, run_node

pytestmark = pytest.mark.usefixtures("lent_readers")

OBJECTS = {
    "boxes": {"field": "json", "path": "objects.bbox", "format": "xywh"},
    "labels": {"field": "json", "path": "objects.label"},
    "keypoints": {"field": "json", "path": "objects.points", "count": 2},
    "polygons": {"field": "json", "path": "objects.polygon"},
}
TRAIN = [
    {"name": "scale_jitter", "target_size": 48, "scale_range": [0.8, 1.5]},
    {"name": "random_crop", "size": 48, "pad_if_needed": True},
    {"name": "random_horizontal_flip"},
    {"name": "sanitize_bounding_boxes", "min_size": 2},
]
REFEREE = """
import { openDataset } from '@shardtool/reader';
const [location, options] = process.argv.slice(1);
const dataset = await openDataset(location);
const loader = dataset.loader(JSON.parse(options));
for await (const { offsets, boxes, boxLabels, boxRows, keypoints, polygons } of loader) {
  const lists = [offsets, boxes, boxLabels, boxRows, keypoints.values, polygons.points].map((list) => [...list]);
  console.log(JSON.stringify(lists));
}
await loader.close();
"""


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    folder = tmp_path_factory.mktemp("objects")
    rng = np.random.default_rng(3)
    for i in range(20):
        file = folder / "images" / "a" / f"{i:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (40, 60, 3), dtype=np.uint8)).save(file)
        found = []
        for n in range(i % 4):
            x, y, w, h = 2 + 14 * n, 3 + n, 12, 20 + n
            found.append(
                {
                    "bbox": [x, y, w, h],
                    "label": n + 1,
                    "points": [x, y, 2, x + w, y + h, 1],
                    "polygon": [[x, y, x + w, y, x, y + h], [x, y, x + 4, y, x + 4, y + 4, x, y + 4]],
                }
            )
        file.with_suffix(".json").write_text(json.dumps({"objects": found}))
    return pack(folder / "images", folder / "shards")


def test_objects_are_those_that_typescript_gives(objects):
    options = {"seed": 5, "batchSize": 8, "annotations": OBJECTS, "workers": 1}
    transform = [
        {"name": "scaleJitter", "targetSize": 48, "scaleRange": [0.8, 1.5]},
        {"name": "randomCrop", "size": 48, "padIfNeeded": True},
        {"name": "randomHorizontalFlip"},
        {"name": "sanitizeBoundingBoxes", "minSize": 2},
    ]
    printed = run_node("--input-type=module", "-e", REFEREE, objects, json.dumps({**options, "transform": transform}))
    expected = [json.loads(line) for line in printed.splitlines()]
    with shardtool.Loader(
        objects, batch_size=8, seed=5, transform=TRAIN, annotations=OBJECTS, output="numpy"
    ) as loader:
        for batch, lists in zip(loader, expected):
            arrays = [
                batch.offsets,
                batch.boxes,
                batch.box_labels,
                batch.box_rows,
                batch.keypoints,
                batch.polygons.points,
            ]
            assert [array.reshape(-1).tolist() for array in arrays] == lists
            assert batch.boxes.shape[1:] == (4,) and batch.keypoints.shape[1:] == (2, 3)
    assert sum(len(lists[2]) for lists in expected) > 10


def test_targets_have_the_form_that_detection_models_require(objects):
    with shardtool.Loader(objects, batch_size=8, shuffle=False, annotations=OBJECTS, collate="list") as loader:
        seen = []
        for batch in loader:
            targets = batch.targets()
            assert len(targets) == len(batch.images)
            for number, target in zip(batch.indices.tolist(), targets):
                assert target["boxes"].dtype == torch.float32 and target["boxes"].shape[1:] == (4,)
                assert target["labels"].dtype == torch.int64
                assert target["keypoints"].shape == (len(target["labels"]), 2, 3)
                assert [len(rings) for rings in target["polygons"]] == [2] * len(target["labels"])
                seen.append((number, len(target["labels"])))
    assert sorted(count for _, count in seen) == sorted(i % 4 for i in range(20))


def test_padded_objects_have_a_mask(objects):
    with shardtool.Loader(objects, batch_size=20, shuffle=False, annotations=OBJECTS) as loader:
        batch = next(iter(loader))
        padded = batch.padded()
    assert padded["boxes"].shape == (20, 3, 4) and padded["keypoints"].shape == (20, 3, 2, 3)
    assert padded["mask"].dtype == torch.bool
    assert torch.equal(padded["boxes"][padded["mask"]], batch.boxes)
    assert torch.equal(padded["labels"][padded["mask"]], batch.box_labels)
    assert (padded["labels"][~padded["mask"]] == -1).all()


def test_without_annotations_there_are_no_targets(objects):
    with shardtool.Loader(objects, batch_size=20) as loader:
        batch = next(iter(loader))
    assert batch.boxes is None and batch.offsets is None
    with pytest.raises(ValueError, match="annotations"):
        batch.targets()


def test_wrong_annotations_are_an_option_error(objects):
    loader = shardtool.Loader(objects, annotations={"boxes": {"field": "jsn"}})
    with loader, pytest.raises(shardtool.OptionError, match='no sample has "jsn"'):
        next(iter(loader))
