"""Samples without images, against NumPy: tars of arrays, text and JSON that Python's tarfile wrote."""

import io
import json
import os
import tarfile
from itertools import chain

import numpy as np
import pytest
import torch

import shardtool
from datasets import run_node

pytestmark = pytest.mark.usefixtures("lent_readers")

ON_DISK = {"shuffle": False, "output": "numpy", "workers": 1}


def npy(array, version=None):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), version=version)
    return file.getvalue()


def write_tar(path, samples):
    """``samples``: pairs of a key and its fields, as bytes by name."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for key, fields in samples:
            for name, data in fields.items():
                entry = tarfile.TarInfo(f"{key}.{name}")
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))


def write_shards(folder, samples, per_shard=10):
    folder.mkdir()
    for shard, at in enumerate(range(0, len(samples), per_shard)):
        write_tar(folder / f"{shard:06d}.tar", samples[at : at + per_shard])
    return folder


def latents(count, dtype=np.float16, shape=(4, 3, 5)):
    values = np.random.default_rng(3).integers(-100, 100, (count, *shape))
    return values.astype(dtype)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """37 latents with captions, classes and JSON."""
    samples = [
        (
            f"{number:03d}",
            {
                "latent.npy": npy(latent),
                "txt": f"caption {number}".encode(),
                "json": json.dumps({"number": number}).encode(),
                "cls": str(number % 3).encode(),
            },
        )
        for number, latent in enumerate(latents(37))
    ]
    return write_shards(tmp_path_factory.mktemp("arrays") / "shards", samples)


DTYPES = ("f2", "f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "b1", "c8", "c16")


def test_arrays_of_every_number_type_are_stacked_as_numpy_stacks_them(tmp_path):
    arrays = {dtype: latents(9, np.dtype(dtype)) for dtype in DTYPES}
    samples = [(str(at), {f"{dtype}.npy": npy(arrays[dtype][at]) for dtype in DTYPES}) for at in range(9)]
    write_shards(tmp_path / "shards", samples, per_shard=5)
    with shardtool.Loader(tmp_path / "shards", batch_size=4, **ON_DISK) as loader:
        batches = list(loader)
    assert [len(batch.labels) for batch in batches] == [4, 4, 1]
    for dtype in DTYPES:
        found = np.concatenate([batch.fields[f"{dtype}.npy"] for batch in batches])
        assert found.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(found, arrays[dtype])


SHAPES = ((), (1,), (0,), (3, 0), (7,), (2, 3), (2, 3, 4, 5))


def test_arrays_of_every_shape_are_stacked_in_c_order_and_the_byte_order_of_the_machine(tmp_path):
    arrays = [latents(6, np.float32, shape) for shape in SHAPES]

    def stored(at, array):
        array = np.asarray(array, ">f4" if at in (2, 3, 5) else "<f4", order="F" if at > 3 else "C")
        return npy(array, ((1, 0), (2, 0), (3, 0), None, None, None)[at])

    samples = [(str(at), {f"{n}.npy": stored(at, a[at]) for n, a in enumerate(arrays)}) for at in range(6)]
    write_shards(tmp_path / "shards", samples, per_shard=4)
    with shardtool.Loader(tmp_path / "shards", batch_size=6, **ON_DISK) as loader:
        (batch,) = loader
    for number, array in enumerate(arrays):
        assert batch.fields[f"{number}.npy"].dtype == np.float32
        np.testing.assert_array_equal(batch.fields[f"{number}.npy"], array)


def test_texts_dates_and_void_are_stacked_too(tmp_path):
    stored = {
        "u.npy": np.array(["é日", "b"], ">U3"),
        "s.npy": np.array([b"ab", b""], "S2"),
        "m.npy": np.array(["2024-01-02", "NaT"], ">M8[D]"),
        # The bytes that numpy.save writes for bfloat16.
        "v.npy": np.array([b"\x80\x3f", b"\x00\x40"], "V2"),
    }
    sample = {name: npy(array) for name, array in stored.items()}
    write_shards(tmp_path / "shards", [("0", sample), ("1", sample)])
    with shardtool.Loader(tmp_path / "shards", batch_size=2, output="torch", shuffle=False, workers=1) as loader:
        (batch,) = loader
    for name, array in stored.items():
        found = batch.fields[name]
        assert isinstance(found, np.ndarray)
        assert found.tobytes() == np.stack([array.astype(array.dtype.newbyteorder("="))] * 2).tobytes()


def test_structured_and_empty_arrays_come_as_lists_of_numpy_arrays(tmp_path):
    mixed = np.dtype([("a", "<f4"), ("b", ">i2", (2,)), ("c", [("d", "S3"), ("e", "|u1")])])
    padded = np.dtype({"names": ["x", "y"], "formats": ["u1", "<f8"], "offsets": [0, 8], "itemsize": 24})
    stored = {
        "mixed.npy": np.frombuffer(bytes(range(24)), mixed),
        "padded.npy": np.frombuffer(bytes(range(48)), padded).reshape(2, 1),
        "fortran.npy": np.asfortranarray(np.frombuffer(bytes(range(96)), padded).reshape(2, 2)),
        "one.npy": np.frombuffer(bytes(range(12)), mixed)[0],
        "none.npy": np.zeros((0, 2), "<f4"),
        "void.npy": np.zeros((2, 3), "V0"),
    }
    sample = {name: npy(array) for name, array in stored.items()}
    write_shards(tmp_path / "shards", [("0", sample), ("1", sample)])
    for collate in ("list", "stack"):
        with shardtool.Loader(tmp_path / "shards", batch_size=2, collate=collate, **ON_DISK) as loader:
            (batch,) = loader
        for name in stored:
            read = np.load(io.BytesIO(sample[name]))
            assert len(batch.fields[name]) == 2
            for found in batch.fields[name]:
                assert found.shape == read.shape
                assert found.dtype == np.stack([read]).dtype.newbyteorder("=")
                assert str(found.tolist()) == str(read.tolist())


def test_a_batch_is_its_fields_and_labels(folder):
    with shardtool.Loader(folder, batch_size=37, with_keys=True, shuffle=False, workers=1) as loader:
        (batch,) = loader
    fields, labels, keys = batch
    assert fields is batch.fields
    assert batch.images is None
    assert sorted(fields) == ["json", "latent.npy", "txt"]
    assert fields["latent.npy"].dtype == torch.float16
    np.testing.assert_array_equal(fields["latent.npy"].numpy(), latents(37))
    assert fields["txt"] == [f"caption {number}" for number in range(37)]
    assert fields["json"] == [{"number": number} for number in range(37)]
    assert labels.tolist() == [number % 3 for number in range(37)]
    assert keys == [f"{number:03d}" for number in range(37)]


def flat(batches):
    return list(chain.from_iterable(batches))


def numbers(loader):
    """The sample numbers of each batch, after a check of the batch against the arrays that were written."""
    written = latents(37)
    for batch in loader:
        found = [one["number"] for one in batch.fields["json"]]
        np.testing.assert_array_equal(batch.fields["latent.npy"], written[found])
        assert batch.fields["txt"] == [f"caption {number}" for number in found]
        assert batch.labels.tolist() == [number % 3 for number in found]
        yield [number for number, valid in zip(found, batch.valid) if valid]


def test_shuffled_arrays_keep_their_captions_and_every_epoch_has_each_sample_once(folder):
    with shardtool.Loader(folder, batch_size=5, output="numpy", workers=2, epochs_per_loop=2) as loader:
        batches = list(numbers(loader))
    first, second = flat(batches[:8]), flat(batches[8:])
    assert sorted(first) == sorted(second) == list(range(37))
    assert first != second != list(range(37))


def test_three_ranks_share_the_samples_and_resume_after_every_batch(folder):
    whole = []
    for rank in range(3):
        options = {"batch_size": 4, "output": "numpy", "workers": 1, "rank": rank, "world_size": 3, "seed": 5}
        with shardtool.Loader(folder, **options) as loader:
            batches, states = [], []
            for batch in numbers(loader):
                batches.append(batch)
                states.append(loader.state_dict())
        whole += flat(batches)
        with shardtool.Loader(folder, **options) as resumed:
            for at, state in enumerate(states[:-1], start=1):
                resumed.load_state_dict(state)
                assert list(numbers(resumed)) == batches[at:]
    assert sorted(whole) == list(range(37))


def test_kept_batches_do_not_change(folder):
    with shardtool.Loader(folder, batch_size=3, output="numpy", workers=1, prefetch_batches=2) as loader:
        batches = list(loader)
        again = list(loader)
    assert len(again) == len(batches) == 13
    assert len(list(numbers(batches))) == 13


def test_a_batch_that_is_moved_has_its_fields_and_still_no_images(folder):
    dataset = shardtool.iterable_dataset(folder, batch_size=4, shuffle=False)
    before = next(iter(dataset))
    moved = before.to("cpu")
    dataset.close()
    assert before.images is None and moved.images is None
    assert moved[0] is moved.fields and moved.fields.keys() == before.fields.keys()


def test_samples_are_chosen_as_images_are(folder):
    with shardtool.Loader(folder, where="cls == 1", batch_size=50, output="numpy", workers=1) as loader:
        assert sorted(flat(numbers(loader))) == list(range(1, 37, 3))
    with shardtool.Loader(folder, classes=[2], keys=["002", "003"], output="numpy", workers=1) as loader:
        assert list(numbers(loader)) == [[2]]


def test_only_the_fields_that_are_named_are_delivered(folder):
    with shardtool.Loader(folder, fields=["txt"], batch_size=37, shuffle=False, workers=1) as loader:
        ((fields, _),) = loader
    assert fields == {"txt": [f"caption {number}" for number in range(37)]}


def test_samples_of_text_alone_need_no_arrays(tmp_path):
    write_shards(tmp_path / "shards", [(str(at), {"txt": f"text {at}".encode()}) for at in range(5)])
    with shardtool.Loader(tmp_path / "shards", batch_size=2, shuffle=False, workers=1) as loader:
        assert [fields["txt"] for fields, _ in loader] == [["text 0", "text 1"], ["text 2", "text 3"], ["text 4"]]


def test_one_sample_is_a_batch(tmp_path):
    write_shards(tmp_path / "shards", [("a", {"npy": npy(np.float32(2.5))})])
    with shardtool.Loader(tmp_path / "shards", **ON_DISK) as loader:
        ((fields, labels),) = loader
    assert fields["npy"].tolist() == [2.5]
    assert labels.tolist() == [-1]


def test_image_false_delivers_the_fields_of_images(tmp_path):
    pixels = np.zeros((4, 4, 3), np.uint8)
    write_shards(tmp_path / "shards", [(str(at), {"npy": npy(pixels + at), "txt": b"x"}) for at in range(3)])
    with shardtool.Loader(tmp_path / "shards", batch_size=3, **ON_DISK) as loader:
        (batch,) = loader
        assert batch.images.shape == (3, 4, 4, 3)
    with shardtool.Loader(tmp_path / "shards", batch_size=3, image=False, **ON_DISK) as loader:
        (batch,) = loader
    assert batch.images is None
    assert batch.fields["npy"].tolist() == [(pixels + at).tolist() for at in range(3)]


def test_arrays_of_different_shapes_are_an_error_that_names_two_samples(tmp_path):
    samples = [("a", {"npy": npy(np.zeros((2, 3), np.float16))}), ("b", {"npy": npy(np.zeros((2, 4), np.float16))})]
    write_shards(tmp_path / "shards", samples, per_shard=1)
    expected = (
        r'The arrays of the field "npy" differ. In sample "a" of .*000000.tar it is float16 \(2, 3\), but in sample '
        r'"b" of .*000001.tar it is an array of float16 \(2, 4\). Store arrays of one dtype and shape, set collate '
        r"to 'list', or choose other fields."
    )
    # Samples of other shapes are not skipped, which would choose samples by their shape.
    with (
        shardtool.Loader(tmp_path / "shards", batch_size=2, on_bad="skip", **ON_DISK) as loader,
        pytest.raises(shardtool.OptionError, match=expected),
    ):
        list(loader)
    with shardtool.Loader(tmp_path / "shards", batch_size=2, collate="list", **ON_DISK) as loader:
        (batch,) = loader
    assert [array.shape for array in batch.fields["npy"]] == [(2, 3), (2, 4)]


def test_a_mixture_of_different_arrays_is_rejected_before_its_first_batch(tmp_path, folder):
    other = write_shards(tmp_path / "other", [("a", {"latent.npy": npy(np.zeros((2,), np.float32))})])
    mixture = shardtool.Mixture([{"dataset": str(folder)}, {"dataset": str(other)}])
    with (
        shardtool.Loader(mixture, fields=["latent.npy"], workers=1) as loader,
        pytest.raises(shardtool.OptionError, match=r"is float16 \(4, 3, 5\) in .* and float32 \(2,\) in"),
    ):
        loader.info()


def test_a_mixture_of_arrays_has_samples_of_both(tmp_path, folder):
    other = write_shards(tmp_path / "other", [("a", {"latent.npy": npy(np.full((4, 3, 5), 7, np.float16))})])
    mixture = shardtool.Mixture([{"dataset": str(folder), "weight": 1}, {"dataset": str(other), "weight": 1}])
    with shardtool.Loader(mixture, fields=["latent.npy"], batch_size=8, output="numpy", workers=1) as loader:
        batch = next(iter(loader))
    assert sorted(batch.dataset_index) == [0, 1]
    for row, source in enumerate(batch.dataset_index):
        expected = np.full((4, 3, 5), 7) if source == 1 else latents(37)[batch.indices[row]]
        np.testing.assert_array_equal(batch.fields["latent.npy"][row], expected)


DAMAGED = {
    "truncated": (npy(np.zeros(8, np.float32))[:-1], "its header promises 32 bytes of values"),
    "longer": (npy(np.zeros(8, np.float32)) + b"\0", "its header promises 32 bytes of values"),
    "empty": (b"", "it is not a .npy file"),
    "not npy": (b"\x93NUMPZ" + bytes(90), "it is not a .npy file"),
    "no header": (b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + bytes(90), "its .npy header is truncated"),
    "pickled": (npy(np.array([{}, 1], object)), "pickled Python objects, which are never run"),
    "missing": (None, 'it has no field "npy"'),
}


def test_damaged_arrays_are_bad_samples(tmp_path):
    good = {"npy": npy(np.arange(8, dtype=np.float32)), "txt": b"t"}
    bad = [{"txt": b"t"} if damaged is None else {**good, "npy": damaged} for damaged, _ in DAMAGED.values()]
    samples = [("good", good), *((name.replace(" ", "-"), fields) for name, fields in zip(DAMAGED, bad))]
    folder = write_shards(tmp_path / "shards", samples)
    with shardtool.Loader(folder, on_bad="skip", **ON_DISK) as loader:
        (batch,) = loader
        found = {sample["key"]: sample["reason"] for sample in loader.report()["bad_samples"]}
    assert sorted(found) == sorted(key for key, _ in samples[1:])
    for name, (_, reason) in DAMAGED.items():
        assert reason in found[name.replace(" ", "-")]
    assert batch.valid.tolist() == [True] + [False] * len(bad)
    assert batch.fields["npy"].tolist() == [list(range(8))] + [[0] * 8] * len(bad)
    with (
        shardtool.Loader(folder, keys=["pickled"], **ON_DISK) as loader,
        pytest.raises(shardtool.BadSampleError, match=r'sample "pickled" cannot be used: .* which are never run'),
    ):
        list(loader)
    with shardtool.Loader(folder, on_bad="replace", **ON_DISK) as loader:
        (batch,) = loader
    assert batch.fields["npy"].tolist() == [list(range(8))] * len(samples)


def test_the_first_sample_may_be_the_damaged_one(tmp_path):
    good = {"npy": npy(np.arange(8, dtype=np.float32))}
    folder = write_shards(tmp_path / "shards", [("0", {"npy": b"?"}), ("1", good)])
    with shardtool.Loader(folder, on_bad="skip", **ON_DISK) as loader:
        (batch,) = loader
    assert batch.fields["npy"].tolist() == [[0] * 8, list(range(8))]


def test_a_changed_byte_of_an_indexed_array_is_found(tmp_path):
    array = np.arange(8, dtype=np.float32)
    folder = write_shards(tmp_path / "shards", [(str(at), {"npy": npy(array)}) for at in range(3)])
    run_node("packages/cli/lib/main.js", "index", folder)
    shard = folder / "000000.tar"
    times = shard.stat()
    data = bytearray(shard.read_bytes())
    data[data.rindex(array.tobytes()) + 5] ^= 1
    shard.write_bytes(data)
    # An index that is older than its shard is not used.
    os.utime(shard, ns=(times.st_atime_ns, times.st_mtime_ns))
    with (
        shardtool.Loader(folder, **ON_DISK) as loader,
        pytest.raises(shardtool.BadSampleError, match="has changed since it was packed"),
    ):
        list(loader)


@pytest.mark.parametrize("option", [{"transform": "train224"}, {"masks": ["txt"]}, {"aspect_buckets": [[8, 8]]}])
def test_an_option_for_images_is_rejected(folder, option):
    with (
        shardtool.Loader(folder, image=False, workers=1, **option) as loader,
        pytest.raises(shardtool.OptionError, match=f"{next(iter(option))} is for images, and image is false"),
    ):
        loader.info()


def test_python_transform_is_rejected_without_images(folder):
    with shardtool.Loader(folder, python_transform=len, python_workers=1, workers=1) as loader:
        match = "python_transform takes images, and the samples have none"
        with pytest.raises(shardtool.OptionError, match=match):
            list(loader)


def test_a_dataset_gives_the_fields_of_a_sample(folder):
    with shardtool.Dataset(folder, output="numpy") as dataset:
        sample = dataset["004"]
        fields, label = sample
        assert (label, sample.key, sample.index, sample.image) == (1, "004", 4, None)
        np.testing.assert_array_equal(fields["latent.npy"], latents(37)[4])
        assert fields["txt"] == "caption 4"
    with shardtool.Dataset(folder, fields=["latent.npy"]) as dataset:
        loader = torch.utils.data.DataLoader(dataset, batch_size=5)
        found = torch.cat([fields["latent.npy"] for fields, _ in loader])
    np.testing.assert_array_equal(found.numpy(), latents(37))


def test_labels_may_be_an_array(folder, tmp_path):
    targets = latents(5, np.float32, (3,))
    samples = [(str(at), {"x.npy": npy(np.int8(at)), "y.npy": npy(target)}) for at, target in enumerate(targets)]
    other = write_shards(tmp_path / "shards", samples)
    with shardtool.Loader(other, labels="y.npy", batch_size=5, **ON_DISK) as loader:
        ((fields, labels),) = loader
    assert fields["x.npy"].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(labels, targets)


def test_a_writer_takes_arrays_numbers_and_tensors_as_npy(tmp_path):
    with shardtool.Writer(tmp_path / "shards", primary="a.npy") as writer:
        for number in range(3):
            fields = {
                "a.npy": np.float32(number),
                "b.npy": torch.full((2, 2), number),
                "c.npy": np.arange(number, 4)[:1],
            }
            writer.add(str(number), **fields)
        with pytest.raises(
            shardtool.OptionError, match=r'"3" has no field "a.npy", which every sample has by the option "primary"'
        ):
            writer.add("3", txt="t")
        with pytest.raises(ValueError, match="Object arrays cannot be saved"):
            writer.add("4", **{"a.npy": np.array([{}], object)})
    with shardtool.Loader(tmp_path / "shards", **ON_DISK) as loader:
        ((fields, _),) = loader
    assert fields["a.npy"].tolist() == [0, 1, 2]
    assert fields["b.npy"].tolist() == [[[n, n], [n, n]] for n in range(3)]
    assert fields["c.npy"].tolist() == [[0], [1], [2]]
