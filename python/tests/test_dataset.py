"""Single samples by index and key, and as a map-style dataset of torch."""

import io
import multiprocessing
import os
import pickle
import shutil
import threading
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import shardtool
from datasets import children, pack, small_images
from shardtool.bridge import frames, reader_process, stored_images
from signals import interrupted_at

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def dataset(photos):
    with shardtool.Dataset(photos, output="numpy") as opened:
        yield opened


def crc(image):
    return zlib.crc32(np.ascontiguousarray(image))


@pytest.mark.usefixtures("lent_readers")
def test_a_sample_has_the_pixels_label_and_key_that_a_loader_gives(photos):
    with shardtool.Dataset(photos, output="numpy", transform="eval224") as dataset:
        assert len(dataset) == 60
        loader = shardtool.Loader(
            photos, batch_size=20, shuffle=False, transform="eval224", output="numpy", with_keys=True, workers=1
        )
        with loader:
            for images, labels, keys in loader:
                for image, label, key in zip(images, labels.tolist(), keys):
                    sample = dataset[key]
                    assert (crc(sample.image), sample.label, sample.key) == (crc(image), label, key)
                    assert crc(dataset[sample.index][0]) == crc(image)


@pytest.mark.usefixtures("lent_readers")
def test_random_numbers_equal_those_of_a_loader_in_every_epoch(photos):
    with shardtool.Dataset(photos, output="numpy", transform="train224", seed=5) as dataset:
        dataset.set_epoch(3)
        loader = shardtool.Loader(
            photos, transform="train224", seed=5, epoch=3, output="numpy", with_keys=True, workers=1
        )
        with loader:
            images, _, keys = next(iter(loader))
            for image, key in zip(images[:8], keys):
                assert crc(dataset[key].image) == crc(image)


def test_numbers_count_from_both_ends_and_parts_are_datasets(dataset):
    assert dataset[-1].index == 59
    assert [sample.index for sample in dataset[10:20:3]] == [10, 13, 16, 19]
    assert [sample.index for sample in dataset[10:50][::-1][:2]] == [49, 48]
    part = dataset[[7, -1, 3]]
    assert (len(part), [sample.index for sample in part]) == (3, [7, 59, 3])
    assert part[part[1].key].index == 59
    assert dataset[np.int64(4)].index == 4
    assert len(dataset[[]]) == 0


@pytest.mark.usefixtures("lent_readers")
def test_a_missing_sample_or_dataset_is_reported(dataset):
    with pytest.raises(IndexError, match="has 60"):
        dataset[60]
    with pytest.raises(KeyError, match="'none' is not a key of the dataset"):
        dataset["none"]
    key = dataset[5].key
    with pytest.raises(KeyError, match=f'did you mean "{key}"'):
        dataset[f"{key}.jpg"]
    with pytest.raises(KeyError, match=f'did you mean "{key}"'):
        dataset[key.upper()]
    with pytest.raises(KeyError):
        dataset[:3][dataset[5].key]
    with pytest.raises(TypeError):
        dataset[1.5]
    with pytest.raises(shardtool.OptionError, match="jsn"):
        shardtool.Dataset(dataset._location, fields=["jsn"])[0]
    with pytest.raises(shardtool.OptionError):
        shardtool.Dataset(dataset._location, transform=[{"name": "resise", "size": 3}])[0]


def test_in_asks_whether_there_is_a_key(dataset):
    key = dataset[3].key
    assert key in dataset and key in dataset[2:5]
    assert key not in dataset[4:] and "cat/none" not in dataset
    with pytest.raises(TypeError, match="A key must be a str"):
        _ = 3 in dataset


def test_classes_fields_and_labels_are_known_without_reading_a_sample(dataset):
    assert dataset.classes == sorted(dataset.classes)
    assert dataset.class_to_idx[dataset.classes[2]] == 2
    assert set(dataset.fields) == {"cls", "jpg"}
    assert dataset.labels.tolist() == [sample.label for sample in dataset]
    assert dataset[4:9].labels.tolist() == dataset.labels[4:9].tolist()


@pytest.mark.usefixtures("lent_readers")
def test_images_come_as_torch_numpy_pillow_and_as_they_are_stored(photos):
    raw = shardtool.Dataset(photos, transform="raw")[3]
    pillow = Image.open(io.BytesIO(raw.image)).convert("RGB")
    stored = shardtool.Dataset(photos, output="numpy").raw(3)
    assert stored["jpg"] == raw.image
    as_pillow = shardtool.Dataset(photos, output="pil")[3].image
    assert as_pillow.size == pillow.size
    tensor = shardtool.Dataset(photos)[3].image
    assert (tensor.dtype, tuple(tensor.shape)) == (torch.uint8, (3, pillow.height, pillow.width))
    assert np.array_equal(tensor.permute(1, 2, 0).numpy(), np.asarray(as_pillow))


@pytest.mark.usefixtures("lent_readers")
def test_custom_functions_get_the_image_and_the_class(photos):
    dataset = shardtool.Dataset(
        photos, output="pil", transform=lambda image: image.resize((8, 4)), target_transform=lambda label: label + 100
    )
    image, label = dataset[2]
    assert (image.size, label) == ((8, 4), dataset.labels[2] + 100)


def encoded(image, kind, **options):
    data = io.BytesIO()
    image.save(data, kind, **options)
    return data.getvalue()


def test_pillow_images_are_those_of_the_reader_for_every_kind_of_file(tmp_path):
    noise = np.random.default_rng(7).integers(0, 256, (37, 53, 3), dtype=np.uint8)
    image = Image.fromarray(noise).resize((106, 75), Image.BICUBIC)
    turned = Image.Exif()
    turned[0x0112] = 6
    files = {
        "baseline.jpg": encoded(image, "jpeg", quality=90, subsampling=2),
        "full.jpg": encoded(image, "jpeg", quality=60, subsampling=0),
        "progressive.jpg": encoded(image, "jpeg", progressive=True),
        "gray.jpg": encoded(image.convert("L"), "jpeg"),
        "cmyk.jpg": encoded(image.convert("CMYK"), "jpeg"),
        "turned.jpg": encoded(image, "jpeg", exif=turned.tobytes()),
        "lossless.png": encoded(image, "png"),
        "clear.png": encoded(image.convert("RGBA"), "png"),
    }
    source = tmp_path / "images"
    (source / "a").mkdir(parents=True)
    for name, data in files.items():
        (source / "a" / name).write_bytes(data)
    shards = pack(source, tmp_path / "shards")
    for turns in (False, True):
        options = {"apply_exif_orientation": turns}
        with (
            shardtool.Dataset(shards, output="pil", **options) as pillow,
            shardtool.Dataset(shards, output="numpy", **options) as reader,
        ):
            assert len(pillow) == len(files)
            for key in [sample.key for sample in reader]:
                assert np.array_equal(np.asarray(pillow[key].image), reader[key].image), key
                assert pillow[key].image.mode == "RGB"


@pytest.mark.usefixtures("lent_readers")
def test_stored_images_are_those_of_the_reader_wherever_they_are_stored(photos, tmp_path):
    """Plain files are read by this process, compressed and split ones by the reader."""
    hidden = shardtool.Dataset(photos, output="numpy")[1].key
    compressed = tmp_path / "photos.zip"
    with shardtool.Dataset(photos) as stored, zipfile.ZipFile(compressed, "w", zipfile.ZIP_DEFLATED) as archive:
        for sample in stored[:12]:
            archive.writestr(f"{sample.key}.jpg", stored.raw(sample.index)["jpg"])
    for place, options in ((photos, {}), (photos, {"exclude_keys": [hidden]}), (compressed, {})):
        with (
            shardtool.Dataset(place, output="numpy", **options) as reader,
            shardtool.Dataset(place, transform="raw", **options) as raw,
            shardtool.Dataset(place, output="pil", **options) as pillow,
        ):
            indices = np.random.default_rng(3).permutation(len(reader))[:12].tolist()
            for index, stored, image in zip(indices, raw.__getitems__(indices), pillow.__getitems__(indices)):
                expected = reader[index]
                for sample in (stored, image, raw[index]):
                    assert (sample.index, sample.label, sample.key) == (index, expected.label, expected.key)
                assert stored.image == reader.raw(index)["jpg"]
                assert np.array_equal(np.asarray(image.image), expected.image)


def test_a_key_that_was_never_requested_is_found_on_request(photos):
    with shardtool.Dataset(photos, output="pil") as dataset:
        key = dataset[7].key
        for sample in (dataset.__getitems__([7])[0], pickle.loads(pickle.dumps(dataset.__getitems__([7])[0]))):
            assert (sample.key, sample.index) == (key, 7)
        later = dataset.__getitems__([7])[0]
        copied = pickle.dumps(dataset.__getitems__([7])[0])
    assert later.key == key
    later._key = None
    del later
    assert pickle.loads(copied).key == key


def test_a_shard_that_changed_is_an_error_that_names_it(photos, tmp_path):
    shards = tmp_path / "shards"
    shutil.copytree(photos, shards)
    with shardtool.Dataset(shards, transform="raw") as dataset:
        image, key = dataset[4].image, dataset[4].key
        shard = next(path for path in sorted(shards.glob("*.tar")) if image in path.read_bytes())
        data = bytearray(shard.read_bytes())
        data[data.index(image) + len(image) // 2] ^= 1
        shard.write_bytes(data)
        for options in ({"transform": "raw"}, {"output": "pil"}):
            with shardtool.Dataset(shards, **options) as changed:
                with pytest.raises(shardtool.ShardtoolError, match="checksum") as error:
                    changed.__getitems__([4])
                assert (error.value.shard, error.value.key) == (shard.name, key)
        with pytest.raises(shardtool.ShardtoolError, match="checksum"):
            _ = dataset[4]
        os.truncate(shard, data.index(b"ustar"))
        with pytest.raises(shardtool.ShardtoolError, match=shard.name):
            _ = dataset[4]


def test_open_shards_are_few_and_are_closed_with_the_dataset(tmp_path, monkeypatch):
    small_images(tmp_path / "images", 12)
    shards = pack(tmp_path / "images", tmp_path / "shards", "--max-shard-samples", "2")
    monkeypatch.setattr(stored_images, "_OPEN_FILES", 2)

    def open_shards():
        links = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
        return sum(link.startswith(str(shards)) for link in links)

    with shardtool.Dataset(shards, transform="raw") as dataset:
        threads = [threading.Thread(target=lambda: dataset.__getitems__(range(12))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [sample.image for sample in dataset] == [dataset.raw(index)["jpg"] for index in range(12)]
        assert open_shards() == 2
    assert open_shards() == 0


def test_a_jpeg_that_pillow_cannot_decode_is_the_bad_sample_that_it_is_for_the_reader(tmp_path):
    source = tmp_path / "images"
    (source / "a").mkdir(parents=True)
    whole = encoded(Image.new("RGB", (64, 64), "red"), "jpeg")
    # The quantization tables are missing.
    start = whole.index(b"\xff\xdb")
    (source / "a" / "bad.jpg").write_bytes(whole[:start] + whole[whole.index(b"\xff\xc0") :])
    shards = pack(source, tmp_path / "shards")
    for output in ("pil", "numpy"):
        with (
            shardtool.Dataset(shards, output=output) as dataset,
            pytest.raises(shardtool.BadSampleError, match="a/bad"),
        ):
            dataset[0]


def test_images_above_max_pixels_are_bad_samples_for_pillow_too(photos):
    with (
        shardtool.Dataset(photos, output="pil", max_pixels=1000) as dataset,
        pytest.raises(shardtool.BadSampleError),
    ):
        dataset[0]


@pytest.mark.usefixtures("lent_readers")
def test_a_transform_that_is_set_later_counts_from_then_on(photos):
    with shardtool.Dataset(photos, output="pil") as dataset:
        part, before = dataset[:3], dataset[2]
        dataset.transform = lambda image: image.resize((8, 4))
        dataset.target_transform = lambda label: label + 100
        assert (dataset[2].image.size, dataset[2].label) == ((8, 4), before.label + 100)
        assert (part[2].image.size, part[2].label) == (before.image.size, before.label)
        dataset.transform, dataset.target_transform = "eval224", None
        assert (dataset.transform, dataset[2].image.size, dataset[2].label) == ("eval224", (224, 224), before.label)
        dataset.transform = "raw"
        assert dataset[2].image == dataset.raw(2)["jpg"]


class Extended(shardtool.Dataset):
    def __init__(self, location):
        super().__init__(location, output="numpy")
        self.prompt = "a photo of"


def test_an_attribute_that_would_be_ignored_is_rejected_with_a_hint(photos):
    dataset = shardtool.Dataset(photos)
    for name, hint in {
        "transfrom": "did you mean 'transform'",
        "seed": r"give seed=\.\.\. when you make it",
        "output": r"give output=\.\.\. when",
        "epoch": "call set_epoch",
        "targets": "labels has the class numbers",
        "anything": "only target_transform and transform can be set",
    }.items():
        with pytest.raises(
            AttributeError, match=f"A shardtool.Dataset has no attribute '{name}' that can be set.*{hint}"
        ):
            setattr(dataset, name, 3)
    with pytest.raises(AttributeError, match="has no attribute 'targets': labels has the class numbers"):
        _ = dataset.targets
    assert not hasattr(dataset, "set_loader_cfg")
    loader = shardtool.Loader(photos)
    for made in (loader, shardtool.iterable_dataset(photos)):
        with pytest.raises(
            AttributeError, match=r"no attribute 'batch_size' that can be set: give batch_size=\.\.\. when you make"
        ):
            made.batch_size = 3
        with pytest.raises(AttributeError, match="no attribute 'transform' that can be set"):
            made.transform = "train224"
    with pytest.raises(AttributeError, match="indices= sets the order"):
        loader.sampler = None
    with pytest.raises(AttributeError, match=r"samples_per_epoch=\.\.\."):
        shardtool.Mixture([{"dataset": photos}]).samples_per_epoch = 3
    assert Extended(photos).prompt == "a photo of"


@pytest.mark.usefixtures("lent_readers")
def test_fields_come_along(small):
    with shardtool.Dataset(small, output="numpy", fields=["json"]) as dataset:
        sample = dataset["b/0001"]
        assert sample.fields == {"json": {"number": 1}}
        image, label, more = sample
        assert (image is sample.image, label, more) == (True, sample.label, sample.fields)
        assert dataset.raw("b/0001")["json"] == {"number": 1}


def test_a_bad_sample_is_an_error_with_its_key_and_the_next_is_as_good_as_ever(tmp_path):
    small_images(tmp_path / "images", 6)
    bad = tmp_path / "images" / "a" / "0002.jpg"
    bad.write_bytes(bad.read_bytes()[:300])
    shards = pack(tmp_path / "images", tmp_path / "shards", "--check", "header")
    with shardtool.Dataset(shards, output="numpy") as dataset:
        with pytest.raises(shardtool.BadSampleError, match="a/0002") as error:
            dataset["a/0002"]
        assert error.value.key == "a/0002"
        assert dataset["a/0000"].image.shape == (32, 32, 3)


# A worker that is not forked imports torch, for 2 s, so one of them must be enough.
@pytest.mark.parametrize(("method", "workers"), [("fork", 2), ("forkserver", 1), ("spawn", 1)])
def test_a_dataloader_with_workers_gives_every_sample_and_leaves_no_reader(photos, method, workers):
    before = children()
    dataset = shardtool.Dataset(photos, transform="eval224")
    expected = {sample.index: crc(sample.image.numpy()) for sample in dataset[:20]}
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=8, num_workers=workers, multiprocessing_context=multiprocessing.get_context(method)
    )
    batches = list(loader)
    images = torch.cat([images for images, _ in batches])
    labels = torch.cat([labels for _, labels in batches])
    assert images.shape == (60, 3, 224, 224)
    assert labels.tolist() == dataset.labels.tolist()
    assert [crc(image.numpy()) for image in images[:20]] == [expected[number] for number in range(20)]
    dataset.close()
    del batches, loader
    left = [child for child in children() if child not in before]
    # The fork server and the resource tracker belong to Python.
    assert len(left) <= {"fork": 0, "spawn": 1, "forkserver": 2}[method]


def test_a_dataset_is_sent_without_its_reader(dataset):
    dataset[0]
    again = pickle.loads(pickle.dumps(dataset[5:7]))
    assert [sample.index for sample in again] == [5, 6]
    again.close()


def test_a_notebook_shows_a_grid_in_which_keys_are_text(tmp_path):
    small_images(tmp_path / "images", 2, classes=("<b>a", "&b"))
    shards = pack(tmp_path / "images", tmp_path / "shards")
    with shardtool.Dataset(shards, output="numpy") as dataset:
        page = dataset._repr_html_()
    assert page.count("data:image/jpeg;base64,") == 2
    assert "&lt;b&gt;a/0000 &lt;b&gt;a" in page
    assert "<b>" not in page


def test_an_interrupt_at_any_moment_leaves_the_dataset_usable(small):
    with shardtool.Dataset(small, output="numpy") as dataset:
        expected = [dataset[number].image.tobytes() for number in range(2)]
        moments = 0
        for moment in range(1000):
            with interrupted_at(moment, reader_process, frames) as interrupted:
                dataset[0]
            if not interrupted:
                break
            moments += 1
            assert dataset[1].image.tobytes() == expected[1]
            assert dataset[0].image.tobytes() == expected[0]
    assert moments > 20
