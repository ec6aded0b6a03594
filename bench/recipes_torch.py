"""The recipes of bench/recipes.mjs by PyTorch's DataLoader and the libraries that published them.

    python bench/recipes_torch.py rate PHOTOS NAME WORKERS BATCH pillow|tensor|opencv BOXES
    python bench/recipes_torch.py boxes PHOTOS BOXES

`rate` prints images per second of the second epoch. `tensor` decodes with torchvision.io and transforms uint8 tensors.
`boxes` writes a COCO file with seven boxes for each photo.
"""

import json
import random
import sys
import time

from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_jpeg, read_file
from torchvision.transforms import v2

BICUBIC = v2.InterpolationMode.BICUBIC


def floats(normalized):
    steps = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    return (
        [*steps, v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
        if normalized
        else steps
    )


def tensor_of(path):
    return decode_jpeg(read_file(path), mode=ImageReadMode.RGB)


class Views:
    """Several transforms of one image."""

    def __init__(self, *transforms):
        self.transforms = transforms

    def __call__(self, image):
        return [transform(image) for transform in self.transforms]


def timm_train(**options):
    from timm.data.transforms_factory import transforms_imagenet_train

    return transforms_imagenet_train(224, **options)


def open_clip_train():
    import open_clip

    return open_clip.image_transform(224, is_train=True)


def trivial_augment():
    return v2.Compose(
        [
            v2.RandomResizedCrop(176, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.TrivialAugmentWide(interpolation=v2.InterpolationMode.BILINEAR),
            *floats(normalized=True),
            v2.RandomErasing(p=0.1),
        ]
    )


def simclr():
    jitter = v2.ColorJitter(0.8, 0.8, 0.8, 0.2)
    view = v2.Compose(
        [
            v2.RandomResizedCrop(224, interpolation=BICUBIC, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.RandomApply([jitter], p=0.8),
            v2.RandomGrayscale(0.2),
            v2.RandomApply([v2.GaussianBlur(23, (0.1, 2.0))], p=0.5),
            *floats(normalized=False),
        ]
    )
    return Views(view, view)


def dino():
    """DataAugmentationDINO of DINOv2: blurred with probability 0, 0.9 and 0.5."""
    jitter = v2.ColorJitter(0.4, 0.4, 0.2, 0.1)

    def view(size, scale, *more):
        crop = v2.RandomResizedCrop(size, scale, interpolation=BICUBIC, antialias=True)
        colors = [v2.RandomApply([jitter], p=0.8), v2.RandomGrayscale(0.2)]
        return v2.Compose(
            [crop, v2.RandomHorizontalFlip(), *colors, *more, *floats(normalized=True)]
        )

    blur = v2.GaussianBlur(9, (0.1, 2.0))
    first = view(224, (0.32, 1))
    second = view(
        224, (0.32, 1), v2.RandomApply([blur], p=0.9), v2.RandomSolarize(128, 0.2)
    )
    local = view(96, (0.05, 0.32), v2.RandomApply([blur], p=0.5))
    return Views(first, second, *[local] * 8)


RECIPES = {
    "timm A1": lambda: timm_train(
        auto_augment="rand-m7-mstd0.5-inc1", interpolation="random"
    ),
    "DeiT III": lambda: timm_train(
        auto_augment="3a",
        force_color_jitter=True,
        color_jitter=0.3,
        interpolation="bicubic",
    ),
    "open_clip": open_clip_train,
    "TrivialAugmentWide": trivial_augment,
    "SimCLR, 2 views": simclr,
    "DINOv2, 2 + 8 views": dino,
}


def dataset_of(folder, backend, transform):
    return ImageFolder(
        folder, transform, **({"loader": tensor_of} if backend == "tensor" else {})
    )


class YoloImages(torch.utils.data.Dataset):
    """The training images of YOLO: a mosaic of four images, scale and translation, mixup of two of these with the
    probability 0.15, HSV jitter, flip. As in Ultralytics' trainer, a worker keeps the images that it decoded most
    recently, and takes the other three images of a mosaic from them."""

    SIDE = 640

    def __init__(self, folder, boxes):
        listed = json.loads(Path(boxes).read_text())
        self.files = [Path(folder) / image["file_name"] for image in listed["images"]]
        self.boxes = [[] for _ in self.files]
        for one in listed["annotations"]:
            x, y, w, h = one["bbox"]
            self.boxes[one["image_id"]].append([x, y, x + w, y + h])
        self.kept = {}

    def __len__(self):
        return len(self.files)

    def load(self, i):
        """An image whose longer side is SIDE, and its boxes."""
        import cv2

        if i in self.kept:
            return self.kept[i]
        image = cv2.imread(str(self.files[i]))
        height, width = image.shape[:2]
        ratio = self.SIDE / max(height, width)
        size = (min(round(width * ratio), self.SIDE), min(round(height * ratio), self.SIDE))
        image = cv2.resize(image, size, interpolation=cv2.INTER_LINEAR)
        boxes = np.array(self.boxes[i], np.float32).reshape(-1, 4) * ratio
        self.kept[i] = image, boxes
        if len(self.kept) > min(len(self), 8 * 16):
            del self.kept[next(iter(self.kept))]
        return image, boxes

    def mosaic(self, i):
        """Four images around a point of a canvas of twice the size, which is then scaled, moved and cut."""
        import cv2

        side = self.SIDE
        cy, cx = (int(random.uniform(side / 2, 3 * side / 2)) for _ in range(2))
        canvas = np.full((2 * side, 2 * side, 3), 114, np.uint8)
        boxes = []
        for part, index in enumerate([i, *random.choices(list(self.kept) or [i], k=3)]):
            image, found = self.load(index)
            h, w = image.shape[:2]
            left, top = cx if part % 2 else cx - w, cy if part > 1 else cy - h
            x1, y1, x2, y2 = max(left, 0), max(top, 0), min(left + w, 2 * side), min(top + h, 2 * side)
            canvas[y1:y2, x1:x2] = image[y1 - top : y2 - top, x1 - left : x2 - left]
            boxes.append(found + np.array([left, top, left, top], np.float32))
        scale = random.uniform(0.5, 1.5)
        shift = [random.uniform(0.4, 0.6) * side - scale * side for _ in range(2)]
        matrix = np.array([[scale, 0, shift[0]], [0, scale, shift[1]]])
        image = cv2.warpAffine(canvas, matrix, dsize=(side, side), borderValue=(114, 114, 114))
        before = np.concatenate(boxes).clip(0, 2 * side)
        after = (before * scale + np.tile(shift, 2)).clip(0, side).astype(np.float32)
        sides, full = after[:, 2:] - after[:, :2], (before[:, 2:] - before[:, :2]) * scale
        return image, after[(sides > 2).all(1) & (sides.prod(1) > 0.1 * full.prod(1))]

    def __getitem__(self, i):
        import cv2

        image, boxes = self.mosaic(i)
        if random.random() < 0.15:
            other, more = self.mosaic(random.randrange(len(self)))
            weight = np.random.beta(32, 32)
            image = (image * weight + other * (1 - weight)).astype(np.uint8)
            boxes = np.concatenate([boxes, more])
        gains = np.random.uniform(-1, 1, 3) * [0.015, 0.7, 0.4]
        steps = np.arange(256)
        tables = [
            ((steps + gains[0] * 180) % 180).astype(np.uint8),
            (steps * (1 + gains[1])).clip(0, 255).astype(np.uint8),
            (steps * (1 + gains[2])).clip(0, 255).astype(np.uint8),
        ]
        channels = cv2.split(cv2.cvtColor(image, cv2.COLOR_BGR2HSV))
        jittered = cv2.merge([cv2.LUT(channel, table) for channel, table in zip(channels, tables)])
        image = cv2.cvtColor(jittered, cv2.COLOR_HSV2RGB)
        if random.random() < 0.5:
            image = image[:, ::-1]
            boxes = boxes[:, [2, 1, 0, 3]] * [-1, 1, -1, 1] + [self.SIDE, 0, self.SIDE, 0]
        return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1))), torch.from_numpy(boxes)


def collate_boxes(samples):
    return torch.stack([image for image, _ in samples]), [boxes for _, boxes in samples]


def no_threads(_):
    import cv2

    cv2.setNumThreads(0)


def write_boxes(folder, file):
    from PIL import Image

    rng = np.random.default_rng(5)
    images, annotations = [], []
    for i, photo in enumerate(sorted(Path(folder).rglob("*.jpg"))):
        width, height = Image.open(photo).size
        images.append({"id": i, "file_name": str(photo.relative_to(folder)), "width": width, "height": height})
        for _ in range(7):
            x, y = rng.uniform(0, [width * 0.7, height * 0.7])
            w, h = rng.uniform(8, [width * 0.3, height * 0.3])
            box = [round(float(value), 2) for value in (x, y, w, h)]
            annotations.append(
                {"id": len(annotations), "image_id": i, "category_id": 1, "bbox": box, "area": w * h, "iscrowd": 0}
            )
    categories = [{"id": 1, "name": "thing"}]
    Path(file).write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))


def loader_of(folder, name, workers, batch, backend, boxes):
    options = {"shuffle": True, "num_workers": workers, "persistent_workers": True}
    if backend == "opencv":
        dataset = YoloImages(folder, boxes)
        return DataLoader(dataset, batch, collate_fn=collate_boxes, worker_init_fn=no_threads, **options)
    return DataLoader(dataset_of(folder, backend, RECIPES[name]()), batch, **options)


def rate(folder, name, workers, batch, backend, boxes):
    torch.set_num_threads(1)
    loader = loader_of(folder, name, int(workers), int(batch), backend, boxes)
    for _ in range(2):
        start = time.perf_counter()
        images = sum(len(labels) for _, labels in loader)
        seconds = time.perf_counter() - start
    print(images / seconds)


if __name__ == "__main__":
    {"rate": rate, "boxes": write_boxes}[sys.argv[1]](*sys.argv[2:])
