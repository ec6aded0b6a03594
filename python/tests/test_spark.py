"""Spark reads and writes shards; tasks fail and are repeated. See engines-requirements.txt; needs Java 17."""

import os
import shutil
import sys
import zlib
from pathlib import Path

import pytest

import shardtool
from datasets import CHECKOUT, run_page

pytestmark = [pytest.mark.long, pytest.mark.time_limit(600)]
sql = pytest.importorskip("pyspark.sql")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java", allow_module_level=True)

JPEG = Path(CHECKOUT / "examples/photos/cat/cat_000.jpg").read_bytes()
ROWS = 40


def image(number):
    return JPEG + number.to_bytes(4, "big")


EXPECTED = {f"k/{number:03d}": (zlib.crc32(image(number)), number % 2) for number in range(ROWS)}


def stored(folder):
    with shardtool.Dataset(folder, transform="raw", output="numpy") as dataset:
        assert len(dataset) == len({sample.key for sample in dataset})
        return {sample.key: (zlib.crc32(sample.image), sample.label) for sample in dataset}


@pytest.fixture(scope="module")
def spark():
    from shardtool.spark import ShardDataSource

    os.environ["PYTHONPATH"] = os.pathsep.join((str(CHECKOUT / "python/src"), str(CHECKOUT / "python/tests")))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = sql.SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "3").getOrCreate()
    session.dataSource.register(ShardDataSource)
    yield session
    session.stop()


def frame(spark, partitions=4, more=False):
    rows = [
        (f"k/{number:03d}", image(number), number % 2, *((f'{{"n": {number}}}', number / 2) if more else ()))
        for number in range(ROWS)
    ]
    schema = "key string, image binary, label int" + (", json string, score double" if more else "")
    return spark.createDataFrame(rows, schema).repartition(partitions)


def write(data, folder, mode="append", **options):
    data.write.format("shardtool").mode(mode).options(**options).save(str(folder))


def test_rows_are_written_and_read_again(spark, tmp_path):
    out = tmp_path / "out"
    how = {"classes": "even,odd", "fields": "json", "columns": "score:double", "max_shard_samples": "7"}
    write(frame(spark, more=True), out, **how)
    assert stored(out) == EXPECTED
    with shardtool.Dataset(out, fields=["json", "score"], output="numpy") as dataset:
        assert dataset["k/007"].fields == {"json": {"n": 7}, "score": 3.5}
        assert dataset.classes == ["even", "odd"]
    for partitions in ("1", "5", "100"):
        read = spark.read.format("shardtool").options(fields="json", partitions=partitions).load(str(out)).collect()
        assert len(read) == ROWS
        assert {row.key: (zlib.crc32(row.image), row.label) for row in read} == EXPECTED
        assert {row.json for row in read} == {f'{{"n": {number}}}' for number in range(ROWS)}


def test_a_dataset_is_replaced_only_in_the_mode_overwrite(spark, tmp_path):
    out = tmp_path / "out"
    write(frame(spark), out)
    with pytest.raises(Exception, match="already contains a dataset"):
        write(frame(spark), out)
    assert stored(out) == EXPECTED
    write(frame(spark).filter("label = 1"), out, mode="overwrite")
    assert stored(out) == {key: value for key, value in EXPECTED.items() if value[1] == 1}
    with pytest.raises(Exception, match="would not be written"):
        write(frame(spark, more=True), tmp_path / "other")


def test_tasks_that_fail_or_whose_worker_is_killed_are_repeated(spark, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()

    def once(batches, folder=str(marks)):
        import os
        import signal
        from pathlib import Path

        for batch in batches:
            for number, key in enumerate(batch.column("key").to_pylist()):
                mark = f"{folder}/{key.replace('/', '-')}"
                if key in ("k/011", "k/022") and not Path(mark).exists():
                    Path(mark).touch()
                    if key == "k/022":
                        os.kill(os.getpid(), signal.SIGKILL)
                    raise ValueError("once")
                yield batch.slice(number, 1)

    spoiled = frame(spark).mapInArrow(once, "key string, image binary, label int")
    write(spoiled, tmp_path / "out")
    assert len(list(marks.iterdir())) == 2
    assert stored(tmp_path / "out") == EXPECTED


def test_a_job_that_fails_leaves_no_dataset_and_no_file(spark, tmp_path):
    def never(batches):
        for batch in batches:
            if "k/011" in batch.column("key").to_pylist():
                raise ValueError("never")
            yield batch

    out = tmp_path / "out"
    with pytest.raises(Exception, match="never"):
        write(frame(spark).mapInArrow(never, "key string, image binary, label int"), out)
    assert not out.exists() or not [file for file in out.iterdir() if ".tar" in file.name or ".json" in file.name]
    write(frame(spark), out)
    assert stored(out) == EXPECTED


def test_the_examples_of_the_page_run(spark, tmp_path, photos):
    run_page("docs/use-with-spark.md", tmp_path, photos)
    assert len(stored(tmp_path / "from-spark")) == 60
