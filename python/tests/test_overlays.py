"""Overlays, splits and lists of keys, which `shardtool overlay` and `shardtool split` create, in Python."""

import shutil

import pytest

import shardtool
from datasets import pack, run_node, small_images

pytestmark = pytest.mark.usefixtures("lent_readers")

CLI = "packages/cli/lib/main.js"


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("overlays")
    small_images(folder / "images", 40)
    shards = pack(folder / "images", folder / "shards", "--max-shard-samples", "9", "--workers", "1")
    (folder / "bad.txt").write_text("a/0000\nb/0001\n")
    (folder / "labels.csv").write_text("key,class\na/0002,b\n")
    run_node(
        CLI, "overlay", "add", shards, "clean", "--exclude-keys", folder / "bad.txt", "--labels", folder / "labels.csv"
    )
    run_node(CLI, "split", shards, "--val", "0.25", "--by", "class", "--parent", "clean")
    return shards


def classes_of(location, **options):
    loader = shardtool.Loader(location, batch_size=8, output="numpy", with_keys=True, workers=1, **options)
    with loader:
        return {key: label for _, labels, keys in loader for key, label in zip(keys, labels.tolist())}


def test_a_loader_delivers_the_samples_of_an_overlay(changed):
    whole = classes_of(changed)
    shown = classes_of(changed, overlay="clean")
    assert set(whole) - set(shown) == {"a/0000", "b/0001"}
    assert {key for key in shown if shown[key] != whole[key]} == {"a/0002"}


def test_the_splits_of_an_overlay_are_the_dataset(changed):
    val, train = classes_of(changed, split="val"), classes_of(changed, split="train")
    assert not set(val) & set(train)
    assert {**val, **train} == classes_of(changed, overlay="clean")
    assert len(val) in (9, 10)


def test_keys_are_excluded_and_a_missing_key_is_an_error(changed):
    assert set(classes_of(changed)) - set(classes_of(changed, exclude_keys=["a/0004"])) == {"a/0004"}
    with pytest.raises(shardtool.OptionError, match='"a/unknown"'):
        classes_of(changed, exclude_keys=["a/unknown"])


def test_a_state_belongs_to_one_overlay(changed):
    options = {"batch_size": 8, "output": "numpy", "workers": 1}
    with shardtool.Loader(changed, overlay="clean", **options) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with shardtool.Loader(changed, **options) as loader:
        loader.load_state_dict(state)
        with pytest.raises(shardtool.ShardtoolError, match=r"belongs to another dataset .*overlay clean"):
            next(iter(loader))


def test_columns_from_json_fields_select_samples(small, tmp_path):
    folder = shutil.copytree(small, tmp_path / "shards")
    run_node(CLI, "index", folder, "--columns", "json.number")
    with shardtool.Loader(str(folder), transform="raw", where="json.number < 7", fields=["json.number"]) as loader:
        found = [number for batch in loader for number in batch.fields["json.number"]]
    assert sorted(found) == list(range(7))
