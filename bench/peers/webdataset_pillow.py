"""webdataset over the same tar shards that shardtool reads, decoded by Pillow."""

from measure import RATIO, SCALE, SIZE, list_shards, measure, parse_arguments

import PIL
import torch
import webdataset
from torchvision import transforms

SHUFFLE_BUFFER = 1000


def build(arguments):
    shards = list_shards(arguments.shards)
    transform = transforms.Compose(
        [
            transforms.RandomResizedCrop(SIZE, scale=SCALE, ratio=RATIO),
            transforms.RandomHorizontalFlip(),
            transforms.PILToTensor(),
        ]
    )
    dataset = (
        webdataset.WebDataset(shards, shardshuffle=len(shards))
        .shuffle(SHUFFLE_BUFFER)
        .decode("pilrgb")
        .to_tuple("jpg;jpeg", "cls")
        .map_tuple(transform, int)
        .batched(arguments.batch, partial=False)
    )
    loader = webdataset.WebLoader(
        dataset, batch_size=None, num_workers=arguments.workers, persistent_workers=True
    )
    return lambda: (images for images, _ in loader)


if __name__ == "__main__":
    torch.set_num_threads(1)
    measure(
        "webdataset, Pillow",
        f"webdataset {webdataset.__version__}, Pillow {PIL.__version__}",
        build,
        parse_arguments(),
        notes=f"shuffle buffer of {SHUFFLE_BUFFER}; each worker drops the end of its own shards",
    )
