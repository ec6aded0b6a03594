"""Mistakes that users make in Python, each with the sentence that they get."""

import numpy as np
import pytest

import shardtool


def batch(location, **options):
    """The first batch of a loader."""
    with shardtool.Loader(
        location, **{"batch_size": 4, "output": "numpy", "transform": "eval224", **options}
    ) as loader:
        return next(iter(loader))


#: Errors that do not depend on the dataset: the call, and the sentence.
AT_ONCE = [
    (lambda at: shardtool.Loader(None), "location must be a path, a URL, or a list of them, not None (NoneType)."),
    (
        lambda at: shardtool.Loader(b"shards"),
        "location must be a path, a URL, or a list of them, not b'shards' (bytes).",
    ),
    (lambda at: shardtool.Loader({"a": 1}), "location must be a path, a URL, or a list of them, not {'a': 1} (dict)."),
    (lambda at: shardtool.Dataset([3]), "location must be a path, a URL, or a list of them, not [3] (list)."),
    (lambda at: shardtool.Loader(at, batchsize=4), "A loader has no option 'batchsize'; did you mean 'batch_size'?"),
    (
        lambda at: shardtool.Loader(at, num_workers=8),
        "A loader has no option 'num_workers': set workers=8 instead, for 8 decode threads.",
    ),
    (
        lambda at: shardtool.Loader(at, collate_fn=list),
        "A loader has no option 'collate_fn': collate=\"list\" returns the images of a batch as a list.",
    ),
    (
        lambda at: shardtool.Loader(at, sampler=[1]),
        "A loader has no option 'sampler': indices=array selects the samples and sets their order.",
    ),
    (
        lambda at: shardtool.Loader(at, transform=224),
        "transform must be a preset, a JSON file, a list of steps, or a pipeline of torchvision or timm, not 224.",
    ),
    (
        lambda at: shardtool.Loader(at, transform={"name": "resize", "size": 8}),
        "transform must be a preset, a JSON file, a list of steps, or a pipeline of torchvision or timm, "
        "not {'name': 'resize', 'size': 8}.",
    ),
    (lambda at: shardtool.Loader(at, output="jax"), 'output must be "torch", "numpy" or "dlpack", not \'jax\'.'),
    (lambda at: shardtool.Loader(at, classes="cat"), "classes must be a list, such as ['cat']."),
    (
        lambda at: shardtool.Dataset(at, tranform="eval224"),
        "A dataset has no option 'tranform'; did you mean 'transform'?",
    ),
    (
        lambda at: shardtool.Dataset(at, batch_size=4),
        "A dataset has no option 'batch_size': for batches, use shardtool.Loader(location, batch_size=...).",
    ),
    (
        lambda at: shardtool.Dataset(at, root="/data"),
        "A dataset has no option 'root': the first argument is the folder or the location.",
    ),
    (
        lambda at: shardtool.Dataset(at)[1.5],
        "A dataset can be indexed with an index, a key, a slice or a list of indices.",
    ),
    (
        lambda at: shardtool.Writer("w", size_limit="64mb"),
        "A writer has no option 'size_limit': max_shard_bytes=\"256MiB\" limits the size of a shard.",
    ),
    (
        lambda at: shardtool.Writer("w", max_shard_sample=5),
        "A writer has no option 'max_shard_sample'; did you mean 'max_shard_samples'?",
    ),
]

#: Steps that give all images one size.
SIZED = [{"name": "resize", "size": 8}, {"name": "center_crop", "size": 8}]

#: Errors when the first batch, or a sample, is requested.
IN_USE = [
    (
        lambda at: batch("nowhere"),
        "nowhere cannot be opened: no such file or folder. Give a folder of shards, a shard file or a URL.",
    ),
    (lambda at: batch(at, batch_size="32"), 'The loader\'s option batch_size is invalid: .* not "32"'),
    (lambda at: batch(at, seed=-1), "The loader's option seed is invalid: .* not -1"),
    (lambda at: batch(at, transform="train244"), 'There is no transform "train244"; did you mean "train224"'),
    (lambda at: batch(at, transform=["resize 224"]), 'Step 1 of the transform, "resize 224", is unknown'),
    (
        lambda at: batch(at, transform=[{"name": "random_resised_crop", "size": 8}]),
        r'did you mean "random_resized_crop"\? Known steps: .*random_iou_crop.*, random_rotate90,',
    ),
    (
        lambda at: batch(at, transform=[{"name": "random_iou_crop", "min_scale": 7}]),
        r"Step 1 of the transform, random_iou_crop, is invalid \(min_scale .*Its parameters: min_scale \(",
    ),
    (
        lambda at: batch(at, transform="train224", mix={"name": "copy_past"}),
        "timm_mixup.*mixup_alpha.*num_classes and label_smoothing.*copy_paste",
    ),
    (
        lambda at: batch(at, transform="train224", mix={"name": "timm_mixup", "mixup_alpha": 0}),
        r"\(mixup_alpha is 0, and so is cutmix_alpha: set one of them, or cutmix_minmax\)",
    ),
    (lambda at: batch(at, aspect_buckets={"max_ratio": 0.5}), r"is \{ area, step, max_ratio, crop \}"),
    (
        lambda at: batch(at, pixel_dtype="uint16", background=0),
        "background is for 8-bit images .*, but channels is 3 and pixel_dtype is uint16",
    ),
    (
        lambda at: batch(at, transform=[{"name": "elastic_transform", "sigma": 1e4}, *SIZED], on_bad="raise"),
        "too small for elastic_transform with a sigma",
    ),
    (
        lambda at: batch(at, transform=None),
        r"The images differ in size\. Sample \".+\" of .+ is undamaged, "
        r"but its size after the transform is \d+x\d+, but the images of the batch have \d+x\d+\. Add "
        r"a resize and a crop",
    ),
    (lambda at: batch(at, split="train"), r'The dataset has no splits.* Create it with "shardtool split"'),
    (lambda at: batch(at, overlay="x"), r'There is no overlay .*x\.jsonl\. "shardtool overlay ls" lists'),
    (lambda at: batch(at, classes=["catt"]), 'There is no class "catt".* the classes are'),
    (lambda at: batch(at, labels="agee"), 'labels: no sample has "agee": the fields are'),
    (lambda at: batch(at, rank=1), "rank is set without world_size"),
    (lambda at: batch(at, rank=2, world_size=2), "Invalid rank 2 of 2"),
    (lambda at: batch("azure://a/b"), "azure://a/b is not a supported location"),
    (
        lambda at: batch("s3://"),
        "s3:// does not name a bucket or host: give the whole location, such as s3://NAME/PATH",
    ),
    (lambda at: shardtool.Dataset(at)["cat/none"], "'cat/none' is not a key of the dataset"),
    (lambda at: shardtool.Dataset(at)[10**6], "There is no sample 1000000: the dataset has 60."),
]

#: Errors of samples that are added to a writer.
ADDED = [
    (lambda writer: writer.add("a"), 'The sample "a" has no field; add at least an image'),
    (
        lambda writer: writer.add("a", "/data/cat.jpg"),
        r"An image must be bytes, an array or a Pillow image, not a path: pass "
        r"Path\('/data/cat.jpg'\).read_bytes\(\)\.",
    ),
    (lambda writer: writer.add("a", np.zeros((4, 4, 2))), r"An image must be a uint8 array .* not float64 \[4, 4, 2\]"),
    (lambda writer: writer.add(3, b"x"), r"The key of a sample must be a str, not 3 \(int\)\."),
    (lambda writer: writer.add("../a", np.zeros((4, 4, 3), np.uint8)), r'The sample "\.\./a" has an invalid key'),
    (
        lambda writer: writer.add("a", np.zeros((4, 4, 3), np.uint8), cls=3),
        r'a field called "cls"; give the class as "label"',
    ),
    (
        lambda writer: writer.add("a", b"not an image"),
        "The image of sample 'a' is not a jpg, png, webp, gif, tif, avif, bmp, ppm or npy file",
    ),
]


@pytest.mark.parametrize(("mistake", "sentence"), AT_ONCE, ids=[sentence[:60] for _, sentence in AT_ONCE])
def test_a_mistake_in_a_call_is_rejected_immediately(photos, mistake, sentence):
    with pytest.raises((TypeError, ValueError)) as caught:
        mistake(photos)
    assert str(caught.value) == sentence


@pytest.mark.usefixtures("lent_readers")
@pytest.mark.parametrize(("mistake", "sentence"), IN_USE, ids=[sentence[:60] for _, sentence in IN_USE])
def test_a_mistake_that_needs_the_dataset_is_named_on_first_use(photos, mistake, sentence):
    with pytest.raises((shardtool.ShardtoolError, LookupError), match=sentence):
        mistake(photos)


def test_a_sample_that_is_wrong_is_named_and_leaves_the_others(tmp_path):
    with shardtool.Writer(tmp_path / "shards") as writer:
        for mistake, sentence in ADDED:
            with pytest.raises((shardtool.ShardtoolError, TypeError), match=sentence):
                mistake(writer)
        writer.add("good", np.zeros((4, 4, 3), np.uint8))
    with shardtool.Dataset(tmp_path / "shards") as dataset:
        assert len(dataset) == 1
