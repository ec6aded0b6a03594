"""A plain bucket sampler with PyTorch's DataLoader and torchvision. Runs one epoch, and prints images per second as JSON.

python bench/buckets_torch.py LIST WORKERS BATCH, where LIST is a JSON file {"sizes": [[h, w]], "files": [[path, bucket]]}.
"""

import json
import random
import sys
import time

import torch
from PIL import Image
from torchvision.transforms import functional as F

sys.path.pop(0)
with open(sys.argv[1]) as file:
    given = json.load(file)
workers, rows = int(sys.argv[2]), int(sys.argv[3])


class Photos(torch.utils.data.Dataset):
    def __len__(self):
        return len(given["files"])

    def __getitem__(self, at):
        path, bucket = given["files"][at]
        height, width = given["sizes"][bucket]
        image = Image.open(path).convert("RGB")
        scale = max(height / image.height, width / image.width)
        image = F.resize(image, [round(image.height * scale), round(image.width * scale)])
        image = F.center_crop(image, [height, width])
        if random.random() < 0.5:
            image = F.hflip(image)
        return F.pil_to_tensor(image)


class BucketSampler:
    """Shuffles the files, and yields a batch as soon as a bucket has enough of them."""

    def __iter__(self):
        order = list(range(len(given["files"])))
        random.Random(1).shuffle(order)
        waiting = {}
        for at in order:
            own = waiting.setdefault(given["files"][at][1], [])
            own.append(at)
            if len(own) == rows:
                yield list(own)
                own.clear()


torch.set_num_threads(1)
loader = torch.utils.data.DataLoader(Photos(), batch_sampler=BucketSampler(), num_workers=workers)
began, images = None, 0
for batch in loader:
    if began is None:
        began = time.perf_counter()
    else:
        images += len(batch)
print(json.dumps({"imagesPerSecond": images / (time.perf_counter() - began)}))
