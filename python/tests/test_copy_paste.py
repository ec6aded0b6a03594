"""Copy-paste of objects by their polygons, against masks of whole pictures in NumPy."""

import json

import numpy as np
import pytest
from PIL import Image

import shardtool
from datasets import pack

pytestmark = pytest.mark.usefixtures("lent_readers")

OBJECTS = {
    "boxes": {"field": "json", "path": "objects.bbox", "format": "xywh"},
    "labels": {"field": "json", "path": "objects.label"},
    "keypoints": {"field": "json", "path": "objects.points", "count": 1},
    "polygons": {"field": "json", "path": "objects.polygon"},
}
HEIGHT, WIDTH, IMAGES, ROWS = 40, 56, 17, 6
OPTIONS = {
    "batch_size": ROWS,
    "seed": 4,
    "image": "png",
    "annotations": OBJECTS,
    "masks": ["seg.png"],
    "output": "numpy",
    "transform": [{"name": "resize", "size": [HEIGHT, WIDTH]}],
}


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """Noise in different sizes with 0 to 4 objects: triangles, self-intersecting stars, crowds without polygons."""
    folder = tmp_path_factory.mktemp("paste")
    rng = np.random.default_rng(8)
    for i in range(IMAGES):
        height, width = 30 + i, 70 - 2 * i
        file = folder / "images" / "a" / f"{i:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(file)
        Image.fromarray(rng.integers(0, 9, (height, width), dtype=np.uint8)).save(file.with_suffix(".seg.png"))
        found = []
        for n in range(i % 5):
            rings = [rng.uniform(0, (width, height), (3 + 2 * (n % 2), 2)) for _ in range(1 + n % 2)]
            corners = np.concatenate(rings)
            (x, y), (right, bottom) = corners.min(0), corners.max(0)
            polygon = {"size": [1, 1], "counts": "RLE"} if n == 2 else [ring.ravel().tolist() for ring in rings]
            box, middle = [x, y, right - x, bottom - y], [(x + right) / 2, (y + bottom) / 2, 2]
            found.append({"bbox": box, "label": n + 1, "points": middle, "polygon": polygon})
        file.with_suffix(".json").write_text(json.dumps({"objects": found}))
    return pack(folder / "images", folder / "shards", "--fields", "seg.png")


def loaded(dataset, mix=None, **options):
    with shardtool.Loader(dataset, mix=mix, **{**OPTIONS, **options}) as loader:
        return [rows_of(batch) for batch in loader]


def rows_of(batch):
    """Each row with its pixels and objects."""
    rows = []
    polygons = batch.polygons
    for row in range(len(batch.labels)):
        objects = slice(int(batch.offsets[row]), int(batch.offsets[row + 1]))
        found = []
        for i in range(objects.start, objects.stop):
            rings = range(int(polygons.object_offsets[i]), int(polygons.object_offsets[i + 1]))
            points = [
                polygons.points[int(polygons.point_offsets[k]) : int(polygons.point_offsets[k + 1])] for k in rings
            ]
            found.append(
                {
                    "box": np.array(batch.boxes[i], np.float64),
                    "label": int(batch.box_labels[i]),
                    "row": int(batch.box_rows[i]),
                    "source": row if batch.box_sources is None else int(batch.box_sources[i]),
                    "rings": [np.array(one, np.float64) for one in points],
                    "keypoint": np.array(batch.keypoints[i, 0], np.float64),
                }
            )
        weight = None if batch.mix is None else float(batch.mix.weights[row])
        rows.append((np.array(batch.images[row]), np.array(batch.masks["seg.png"][row]), found, weight))
    return rows


def inside(ring):
    """Which pixels have their center in a polygon, by the even-odd rule."""
    y, x = np.mgrid[:HEIGHT, :WIDTH] + 0.5
    found = np.zeros((HEIGHT, WIDTH), bool)
    for (x1, y1), (x2, y2) in zip(ring, np.roll(ring, -1, 0)):
        if y1 != y2:
            crosses = (y1 <= y) != (y2 <= y)
            found ^= crosses & (x1 + (y - y1) * (x2 - x1) / (y2 - y1) <= x)
    return found


def pixels_of(one):
    left, top, right, bottom = one["box"]
    rings = one["rings"] or [np.array([[left, top], [right, top], [right, bottom], [left, bottom]])]
    return np.any([inside(ring) for ring in rings], axis=0)


def assert_same_object(one, other):
    for name in one:
        for a, b in zip(*([value] if name != "rings" else value for value in (one[name], other[name]))):
            np.testing.assert_allclose(a, b, atol=1e-4, err_msg=name)
    assert len(one["rings"]) == len(other["rings"])


@pytest.mark.parametrize(
    ("p", "object_p", "rule"), [(1, 1, (0, 0)), (1, 1, (4, 0.5)), (0.6, 0.5, (1, 0.1)), (1, 0, (1, 0.1))]
)
def test_pasted_objects_hide_the_pixels_behind_them(objects, p, object_p, rule):
    min_size, min_visibility = rule
    mix = {"name": "copy_paste", "p": p, "object_p": object_p, "min_size": min_size, "min_visibility": min_visibility}
    changed, dropped, chosen_of, pasted_all = 0, 0, 0, 0
    for before, after in zip(loaded(objects), loaded(objects, mix)):
        assert len(before) == len(after)
        for row, (image, mask, found, weight) in enumerate(after):
            own_image, own_mask, own, _ = before[row]
            other = (row - 1) % len(before)
            other_image, other_mask, theirs, _ = before[other]
            pasted = [one for one in found if one["source"] != row]
            assert all(one["source"] == other for one in pasted)
            rows = [one["row"] for one in pasted]
            # Objects without polygons are never pasted. With probabilities of 1, all others are.
            candidates = [one for one in theirs if one["rings"]]
            chosen = [one for one in candidates if one["row"] in rows]
            assert [one["row"] for one in chosen] == rows
            if p == 1 and object_p == 1:
                assert chosen == candidates
            chosen_of, pasted_all = chosen_of + len(chosen), pasted_all + len(candidates)
            hidden = np.zeros((HEIGHT, WIDTH), bool)
            for one in chosen:
                hidden |= pixels_of(one)
            np.testing.assert_array_equal(image, np.where(hidden[..., None], other_image, own_image))
            np.testing.assert_array_equal(mask, np.where(hidden, other_mask, own_mask))
            assert weight == pytest.approx(1 - hidden.mean())
            expected = []
            for one in own:
                pixels = pixels_of(one)
                visible = pixels & ~hidden
                box = one["box"]
                if visible.sum() < pixels.sum():
                    y, x = np.nonzero(visible)
                    if len(y) == 0 or len(y) < min_visibility * pixels.sum():
                        continue
                    low, high = np.array([x.min(), y.min()]), np.array([x.max() + 1, y.max() + 1])
                    box = np.concatenate([np.maximum(box[:2], low), np.minimum(box[2:], high)])
                    if (box[2:] - box[:2]).min() < max(min_size, 1e-9):
                        continue
                x, y, seen = one["keypoint"]
                point = [x, y, 0 if hidden[min(HEIGHT - 1, int(y)), min(WIDTH - 1, int(x))] else seen]
                expected.append({**one, "box": box, "keypoint": np.array(point)})
            expected += [{**one, "source": other} for one in chosen]
            assert len(found) == len(expected)
            for one, two in zip(found, expected):
                assert_same_object(one, two)
            changed, dropped = changed + hidden.any(), dropped + len(own) + len(chosen) - len(expected)
    assert (changed > 0) == (object_p > 0)
    assert dropped > 0 or object_p < 1
    if object_p == 0.5:
        assert 0 < chosen_of < pasted_all


def test_copy_paste_is_the_same_with_any_workers_and_after_resuming(objects):
    mix = {"name": "copy_paste", "p": 0.8}
    options = {"rank": 1, "world_size": 2, "batch_size": 3}

    def same(one, two):
        assert len(one) == len(two) > 0
        for a, b in zip(one, two):
            for (image, _, found, weight), (image_b, _, found_b, weight_b) in zip(a, b):
                np.testing.assert_array_equal(image, image_b)
                assert weight == weight_b and len(found) == len(found_b)
                for object_a, object_b in zip(found, found_b):
                    assert_same_object(object_a, object_b)

    whole = loaded(objects, mix, workers=1, **options)
    same(whole, loaded(objects, mix, workers=3, **options))
    with shardtool.Loader(objects, mix=mix, **{**OPTIONS, **options}) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with shardtool.Loader(objects, mix=mix, **{**OPTIONS, **options}) as loader:
        loader.load_state_dict(state)
        same(whole[1:], [rows_of(batch) for batch in loader])


def test_copy_paste_without_polygons_is_rejected(objects):
    annotations = {name: OBJECTS[name] for name in ("boxes", "labels")}
    with pytest.raises(shardtool.OptionError, match="add polygons to the option annotations"):  # noqa: SIM117
        with shardtool.Loader(objects, mix={"name": "copy_paste"}, **{**OPTIONS, "annotations": annotations}) as loader:
            next(iter(loader))
