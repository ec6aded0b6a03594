"""Names of built-in properties of JavaScript are names like any other."""

from pathlib import Path

import shardtool
from datasets import pack

NAMES = ["__proto__", "constructor", "hasownproperty"]


def test_fields_keys_and_classes_may_have_names_of_built_in_properties(tmp_path):
    image = Path("test/fixtures/odd-images/one-pixel.jpg").read_bytes()
    for name in NAMES:
        folder = tmp_path / "images" / name
        folder.mkdir(parents=True)
        (folder / f"{name}.jpg").write_bytes(image)
        for field in NAMES:
            (folder / f"{name}.{field}").write_text(f"{field} of {name}")
    shards = pack(tmp_path / "images", tmp_path / "shards")
    with shardtool.Loader(
        shards, batch_size=3, transform="eval224", fields=NAMES, classes=NAMES, with_keys=True, workers=1
    ) as loader:
        (batch,) = loader
        assert sorted(key.split("/")[1] for key in batch.keys) == NAMES
        for row, key in enumerate(batch.keys):
            name = key.split("/")[1]
            for field in NAMES:
                assert batch.fields[field][row] == f"{field} of {name}".encode()
