"""Mosaics and mixup with boxes, against the arithmetic of YOLO's mosaic in NumPy."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

import shardtool
from datasets import pack

pytestmark = pytest.mark.usefixtures("lent_readers")

OBJECTS = {
    "boxes": {"field": "json", "path": "objects.bbox", "format": "xywh"},
    "labels": {"field": "json", "path": "objects.label"},
    "keypoints": {"field": "json", "path": "objects.points", "count": 2},
    "polygons": {"field": "json", "path": "objects.polygon"},
}
HEIGHT, WIDTH, IMAGES, ROWS = 40, 56, 23, 6
RESIZE = [{"name": "resize", "size": [HEIGHT, WIDTH]}]
OPTIONS = {
    "batch_size": ROWS,
    "seed": 4,
    "image": "png",
    "annotations": OBJECTS,
    "masks": ["seg.png"],
    "output": "numpy",
}
FLOATS = [*RESIZE, {"name": "to_dtype", "dtype": "float32"}]


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """Images of noise in different sizes, with 0 to 4 objects and a mask each."""
    folder = tmp_path_factory.mktemp("mosaic")
    rng = np.random.default_rng(8)
    for i in range(IMAGES):
        height, width = 30 + i, 70 - 2 * i
        file = folder / "images" / "a" / f"{i:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(file)
        Image.fromarray(rng.integers(0, 9, (height, width), dtype=np.uint8)).save(file.with_suffix(".seg.png"))
        found = []
        for n in range(i % 5):
            x, y, w, h = (float(value) for value in rng.uniform((0, 0, 1, 1), (15, 10, width - 15, height - 10)))
            found.append(
                {
                    "bbox": [x, y, w, h],
                    "label": n + 1,
                    "points": [x, y, 2, x + w, y + h, 1],
                    "polygon": [[x, y, x + w, y, x + w, y + h, x, y + h]],
                }
            )
        file.with_suffix(".json").write_text(json.dumps({"objects": found}))
    return pack(folder / "images", folder / "shards", "--fields", "seg.png")


def loaded(dataset, mix=None, transform=RESIZE, **options):
    """The batches of an epoch, as NumPy arrays."""
    with shardtool.Loader(dataset, transform=transform, mix=mix, **{**OPTIONS, **options}) as loader:
        return [copied(batch) for batch in loader]


def copied(batch):
    names = ("offsets", "boxes", "box_labels", "box_rows", "box_sources", "keypoints", "labels", "indices")
    values = {name: getattr(batch, name) for name in names}
    values.update({"points": batch.polygons.points, "rings": np.diff(batch.polygons.object_offsets)})
    values.update({"images": batch.images, "mask": batch.masks.get("seg.png")})
    if batch.mix is not None:
        values["weights"] = batch.mix.weights
    return {name: None if value is None else np.array(value) for name, value in values.items()}


def same(one, two):
    assert len(one) == len(two)
    for a, b in zip(one, two):
        assert a.keys() == b.keys()
        for name in a:
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def of_row(batch, name, row):
    return batch[name][batch["offsets"][row] : batch["offsets"][row + 1]]


def mosaic4(images, boxes, center):
    """Ultralytics' Mosaic._mosaic4 of images of one size, and the middle of its canvas. center is in that middle."""
    (h, w), (xc, yc) = images[0].shape[:2], (center[0] + WIDTH // 2, center[1] + HEIGHT // 2)
    canvas = np.full((2 * h, 2 * w, *images[0].shape[2:]), 114, images[0].dtype)
    moved = []
    for i, img in enumerate(images):
        if i == 0:
            x1a, y1a, x2a, y2a = max(xc - w, 0), max(yc - h, 0), xc, yc
            x1b, y1b, x2b, y2b = w - (x2a - x1a), h - (y2a - y1a), w, h
        elif i == 1:
            x1a, y1a, x2a, y2a = xc, max(yc - h, 0), min(xc + w, 2 * w), yc
            x1b, y1b, x2b, y2b = 0, h - (y2a - y1a), min(w, x2a - x1a), h
        elif i == 2:
            x1a, y1a, x2a, y2a = max(xc - w, 0), yc, xc, min(2 * h, yc + h)
            x1b, y1b, x2b, y2b = w - (x2a - x1a), 0, w, min(y2a - y1a, h)
        else:
            x1a, y1a, x2a, y2a = xc, yc, min(xc + w, 2 * w), min(2 * h, yc + h)
            x1b, y1b, x2b, y2b = 0, 0, min(w, x2a - x1a), min(y2a - y1a, h)
        canvas[y1a:y2a, x1a:x2a] = img[y1b:y2b, x1b:x2b]
        moved.append(boxes[i].astype(np.float64) + np.tile([x1a - x1b - w // 2, y1a - y1b - h // 2], 2))
    clipped = np.concatenate(moved).clip(0, np.tile([w, h], 2))
    return canvas[h // 2 : h // 2 + h, w // 2 : w // 2 + w], clipped


def sources_of(mosaic, images, center):
    """The rows whose images a mosaic shows, found by their noise."""
    x, y = center
    parts = [
        (mosaic[:y, :x], images[:, HEIGHT - y :, WIDTH - x :]),
        (mosaic[:y, x:], images[:, HEIGHT - y :, : WIDTH - x]),
        (mosaic[y:, :x], images[:, : HEIGHT - y, WIDTH - x :]),
        (mosaic[y:, x:], images[:, : HEIGHT - y, : WIDTH - x]),
    ]
    found = [np.flatnonzero((whole == part).all(axis=(1, 2, 3))) for part, whole in parts]
    assert [len(rows) for rows in found] == [1] * 4
    return [int(rows[0]) for rows in found]


@pytest.mark.parametrize("transform", [RESIZE, FLOATS])
@pytest.mark.parametrize(("fractions", "min_size", "min_visibility"), [(0.4, 0, 0), (0.61, 1, 0.1), (0.5, 9, 0.5)])
def test_a_mosaic_is_the_middle_of_that_of_yolo(objects, transform, fractions, min_size, min_visibility):
    mix = {"name": "mosaic", "center_range": [fractions] * 2, "min_size": min_size, "min_visibility": min_visibility}
    center = (int(WIDTH * fractions), int(HEIGHT * fractions))
    plain, mixed = loaded(objects, transform=transform), loaded(objects, mix, transform)
    dropped = kept = 0
    for before, after in zip(plain, mixed):
        np.testing.assert_array_equal(before["indices"], after["indices"])
        np.testing.assert_array_equal(before["labels"], after["labels"])
        uses = []
        images = before["images"] if before["images"].shape[-1] == 3 else np.moveaxis(before["images"], 1, -1)
        shown = after["images"] if after["images"].shape[-1] == 3 else np.moveaxis(after["images"], 1, -1)
        for row in range(len(images)):
            rows = sources_of(shown[row], images, center)
            uses += rows
            assert rows[0] == row and len(set(rows)) == min(4, len(images))
            boxes = [of_row(before, "boxes", source) for source in rows]
            picture, expected = mosaic4([images[source] for source in rows], boxes, center)
            np.testing.assert_array_equal(shown[row], picture)
            mask, _ = mosaic4([before["mask"][source] for source in rows], boxes, center)
            np.testing.assert_array_equal(after["mask"][row], mask)
            given = np.concatenate(boxes).astype(np.float64)
            sides, full = expected[:, 2:] - expected[:, :2], given[:, 2:] - given[:, :2]
            left = (sides > 0).all(1) & (sides.min(1, initial=99) >= min_size)
            left &= sides.prod(1) >= min_visibility * full.prod(1)
            np.testing.assert_allclose(of_row(after, "boxes", row), expected[left], atol=1e-4)
            for name, of in (("box_labels", "box_labels"), ("box_rows", "box_rows")):
                values = np.concatenate([of_row(before, of, source) for source in rows])
                np.testing.assert_array_equal(of_row(after, name, row), values[left])
            origins = np.concatenate([np.full(len(one), source) for one, source in zip(boxes, rows)])
            np.testing.assert_array_equal(of_row(after, "box_sources", row), origins[left])
            # The corners of the polygons and the first keypoint are those of the boxes.
            polygons = after["points"].reshape(-1, 4, 2)[after["offsets"][row] : after["offsets"][row + 1]]
            np.testing.assert_allclose(polygons.min(1), expected[left][:, :2], atol=1e-4)
            np.testing.assert_allclose(polygons.max(1), expected[left][:, 2:], atol=1e-4)
            kept, dropped = kept + left.sum(), dropped + (~left).sum()
            assert after["weights"][row] == pytest.approx(center[0] * center[1] / (WIDTH * HEIGHT))
        assert sorted(uses) == sorted(4 * list(range(len(images))))
    assert kept > 15 and dropped > 20


def test_keypoints_under_another_image_are_not_labelled(objects):
    mix = {"name": "mosaic", "center_range": [0.5, 0.5], "min_size": 0, "min_visibility": 0}
    for batch in loaded(objects, mix):
        x, y = batch["keypoints"][..., 0], batch["keypoints"][..., 1]
        boxes = batch["boxes"]
        inside = (x >= boxes[:, :1]) & (x <= boxes[:, 2:3]) & (y >= boxes[:, 1:2]) & (y <= boxes[:, 3:])
        # Only points of the clipped boxes can be visible; the others are in the part of another image or outside.
        assert (batch["keypoints"][..., 2][~inside] == 0).all()
        assert (batch["keypoints"][..., 2] > 0).any()


def test_a_mosaic_of_probability_zero_changes_nothing_but_a_row_for_each_object(objects):
    for before, after in zip(loaded(objects), loaded(objects, {"name": "mosaic", "p": 0})):
        sources = np.repeat(np.arange(len(before["labels"])), np.diff(before["offsets"]))
        np.testing.assert_array_equal(after.pop("box_sources"), sources)
        assert (after.pop("weights") == 1).all()
        assert before.pop("box_sources") is None
        same([before], [after])


@pytest.mark.parametrize("box_format", ["xywh", "cxcywh"])
def test_boxes_of_mosaics_have_the_chosen_format(objects, box_format):
    mix = {"name": "mosaic", "p": 0.7}
    corners = np.concatenate([batch["boxes"] for batch in loaded(objects, mix)])
    boxes = np.concatenate(
        [batch["boxes"] for batch in loaded(objects, mix, annotations={**OBJECTS, "box_format": box_format})]
    )
    start = boxes[:, :2] if box_format == "xywh" else boxes[:, :2] - boxes[:, 2:] / 2
    np.testing.assert_allclose(np.concatenate([start, start + boxes[:, 2:]], 1), corners, atol=1e-4)


@pytest.mark.parametrize(
    ("mix", "world"),
    [
        ({"name": "mosaic", "p": 0.8, "center_range": [0, 1]}, 3),
        ([{"name": "mosaic"}, {"name": "mosaic", "p": 0.3}], 1),
        ({"name": "timm_mixup", "mixup_alpha": 32, "prob": 0.5, "mode": "elem"}, 2),
        ({"name": "sequence", "mixes": [{"name": "mosaic"}, {"name": "copy_paste"}, {"name": "mixup"}]}, 2),
        ([{"name": "sequence", "mixes": [{"name": "copy_paste"}, {"name": "mosaic"}]}, {"name": "mosaic"}], 1),
    ],
)
def test_mixed_objects_are_the_same_with_any_workers_and_after_resuming(objects, mix, world):
    masks = [] if "mixup" in str(mix) else ["seg.png"]
    rank = world - 1
    options = {"rank": rank, "world_size": world, "masks": masks, "batch_size": 3}
    whole = loaded(objects, mix, workers=1, **options)
    same(whole, loaded(objects, mix, workers=3, **options))
    given = {**OPTIONS, "transform": RESIZE, "mix": mix, **options}
    with shardtool.Loader(objects, **given) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with shardtool.Loader(objects, **given) as loader:
        loader.load_state_dict(state)
        same(whole[1:], [copied(batch) for batch in loader])


def test_mixup_keeps_the_boxes_of_both_images(objects):
    plain = loaded(objects, masks=[], transform=FLOATS)
    mix = {"name": "timm_mixup", "mixup_alpha": 32, "prob": 0.7, "mode": "elem"}
    seen = set()
    for before, after in zip(plain, loaded(objects, mix, FLOATS, masks=[])):
        rows = len(before["labels"])
        for row in range(rows):
            other, weight = rows - 1 - row, after["weights"][row]
            seen.add(bool(weight == 1))
            image = weight * before["images"][row] + (1 - weight) * before["images"][other]
            np.testing.assert_allclose(after["images"][row], image, atol=1e-5)
            both = [row] if weight == 1 or other == row else [row, other]
            for name in ("boxes", "box_labels", "box_rows", "keypoints"):
                values = np.concatenate([of_row(before, name, source) for source in both])
                np.testing.assert_array_equal(of_row(after, name, row), values)
            origins = np.repeat(both, [len(of_row(before, "boxes", source)) for source in both])
            np.testing.assert_array_equal(of_row(after, "box_sources", row), origins)
    assert seen == {True, False}


@pytest.mark.parametrize("fractions", [[0.5, 0.5], [0.2, 0.9]])
def test_mixup_after_a_mosaic_mixes_the_mosaics_and_keeps_the_boxes_of_both(objects, fractions):
    def sequence(prob):
        mixup = {"name": "timm_mixup", "mixup_alpha": 32, "prob": prob, "mode": "elem"}
        mixes = [{"name": "mosaic", "p": 0.8, "center_range": fractions}, mixup]
        return loaded(objects, {"name": "sequence", "mixes": mixes}, FLOATS, masks=[])

    blended = several = 0
    for before, after in zip(sequence(0), sequence(0.7)):
        rows = len(before["labels"])
        np.testing.assert_array_equal(before["labels"], after["labels"])
        for row in range(rows):
            other, weight = rows - 1 - row, after["weights"][row] / before["weights"][row]
            image = weight * before["images"][row] + (1 - weight) * before["images"][other]
            np.testing.assert_allclose(after["images"][row], image, atol=1e-4)
            both = [row] if weight == 1 or other == row else [row, other]
            for name in ("boxes", "box_labels", "box_rows", "box_sources", "keypoints"):
                values = np.concatenate([of_row(before, name, source) for source in both])
                np.testing.assert_array_equal(of_row(after, name, row), values)
            blended += len(both) == 2
            several += len(of_row(after, "boxes", row)) > len(of_row(before, "boxes", row)) > 0
    assert blended > 8 and several > 2


def test_a_sequence_of_one_mosaic_is_a_mosaic(objects):
    mix = {"name": "sequence", "mixes": [{"name": "mosaic", "center_range": [0.4, 0.4], "min_size": 0}]}
    for before, after in zip(loaded(objects), loaded(objects, mix)):
        for row in range(len(before["images"])):
            rows = sources_of(after["images"][row], before["images"], (int(WIDTH * 0.4), int(HEIGHT * 0.4)))
            boxes = [of_row(before, "boxes", source) for source in rows]
            images, masks = ([before[name][source] for source in rows] for name in ("images", "mask"))
            center = (int(WIDTH * 0.4), int(HEIGHT * 0.4))
            np.testing.assert_array_equal(after["images"][row], mosaic4(images, boxes, center)[0])
            np.testing.assert_array_equal(after["mask"][row], mosaic4(masks, boxes, center)[0])
        assert after["weights"] == pytest.approx(0.16, abs=0.02)


def test_targets_of_mosaics_are_those_of_detection_models(objects):
    with shardtool.Loader(
        objects, **{**OPTIONS, "output": "torch"}, transform=RESIZE, mix={"name": "mosaic"}
    ) as loader:
        for batch in loader:
            for target in batch.targets():
                assert (target["boxes"][:, 2:] > target["boxes"][:, :2]).all()
                assert target["boxes"].dtype == torch.float32


def test_cutmix_of_boxes_and_mixup_of_masks_are_rejected_by_name(objects):
    with pytest.raises(shardtool.OptionError, match="cutmix of the option mix has no rule for boxes"):
        loaded(objects, {"name": "cutmix"}, masks=[])
    with pytest.raises(shardtool.OptionError, match="cannot mix masks"):
        loaded(objects, {"name": "mixup"})
    for refused, masks, message in (
        ("cutmix", [], "cutmix .* has no rule"),
        ("mixup", ["seg.png"], "cannot mix masks"),
    ):
        with pytest.raises(shardtool.OptionError, match=message):
            loaded(objects, {"name": "sequence", "mixes": [{"name": "mosaic"}, {"name": refused}]}, masks=masks)
    with pytest.raises(shardtool.OptionError, match=r"did you mean.*mosaic"):
        loaded(objects, {"name": "mosiac"})
