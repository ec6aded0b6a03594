"""Trains torchvision's Faster R-CNN on the CPU, with drawings that it makes itself, from shards or from files.

    python examples/train_detection.py --make shapes            # 24 drawings, and their boxes as COCO's annotations
    npx shardtool pack shapes/images shapes/shards --coco shapes/annotations.json --no-shuffle
    python examples/train_detection.py --data shapes/shards
    python examples/train_detection.py --data shapes --files    # the same losses: images and boxes are the same

Only the model is random, with the same seed for both, so that the losses can be compared. Real training has more steps
in ``transform`` (docs/detection.md), and shuffles.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch.utils.data import DataLoader, Dataset
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
from torchvision.ops import MultiScaleRoIAlign

CLASSES = ["rectangle", "disc", "triangle"]

parser = argparse.ArgumentParser(description="Trains Faster R-CNN on drawings.")
parser.add_argument("--make", help="draw into this folder, and exit")
parser.add_argument("--data", default="shapes/shards", help="a folder of shards; with --files, the folder of drawings")
parser.add_argument("--files", action="store_true", help="read files with torch's DataLoader")
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--batch-size", type=int, default=4)
arguments = parser.parse_args()


def make(folder, count=24):
    """Makes drawings of several sizes, with zero to three shapes each."""
    rng = np.random.default_rng(0)
    images, annotations = [], []
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for number in range(count):
        width, height = (int(side) for side in rng.integers(96, 161, 2))
        drawing = Image.fromarray(rng.integers(0, 80, (height, width, 3), dtype=np.uint8))
        name = f"{number:03}.png"
        images.append({"id": number, "file_name": name, "width": width, "height": height})
        for shape in range(number % 4):
            w, h = (int(side) for side in rng.integers(20, 41, 2))
            x, y = int(rng.integers(0, width - w)), int(rng.integers(0, height - h))
            kind, colour = int(rng.integers(0, 3)), tuple(int(value) for value in rng.integers(120, 256, 3))
            draw, corners = ImageDraw.Draw(drawing), [x, y, x + w - 1, y + h - 1]
            if kind == 0:
                draw.rectangle(corners, fill=colour)
            elif kind == 1:
                draw.ellipse(corners, fill=colour)
            else:
                draw.polygon([(x, y + h - 1), (x + w // 2, y), (x + w - 1, y + h - 1)], fill=colour)
            found = {"id": 10 * number + shape, "image_id": number, "category_id": kind + 1, "bbox": [x, y, w, h]}
            annotations.append({**found, "area": w * h, "iscrowd": 0})
        drawing.save(folder / "images" / name)
    categories = [{"id": number + 1, "name": name} for number, name in enumerate(CLASSES)]
    coco = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "annotations.json").write_text(json.dumps(coco))


class Drawings(Dataset):
    """Reads such a folder like torchvision's CocoDetection and its reference scripts, without pycocotools."""

    def __init__(self, folder):
        coco = json.loads((folder / "annotations.json").read_text())
        self.folder, self.images = folder, coco["images"]
        self.found = {image["id"]: [] for image in coco["images"]}
        for annotation in coco["annotations"]:
            self.found[annotation["image_id"]].append(annotation)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, number):
        image = self.images[number]
        with Image.open(self.folder / "images" / image["file_name"]) as file:
            pixels = torch.from_numpy(np.array(file.convert("RGB"))).permute(2, 0, 1)
        found = self.found[image["id"]]
        boxes = torch.tensor([annotation["bbox"] for annotation in found], dtype=torch.float32).reshape(-1, 4)
        boxes[:, 2:] += boxes[:, :2]
        return pixels, {"boxes": boxes, "labels": torch.tensor([a["category_id"] for a in found], dtype=torch.int64)}


def from_files(folder):
    def listed(samples):
        return tuple(zip(*samples))

    while True:
        yield from DataLoader(Drawings(folder), batch_size=arguments.batch_size, collate_fn=listed)


def from_shards(folder):
    import shardtool

    annotations = {"boxes": {"field": "json", "path": "boxes"}, "labels": {"field": "json", "path": "labels"}}
    with shardtool.Loader(
        folder,
        batch_size=arguments.batch_size,
        shuffle=False,
        last_batch="partial",
        collate="list",  # images of different sizes
        epochs_per_loop=float("inf"),
        annotations=annotations,
    ) as loader:
        for batch in loader:
            targets = batch.targets()
            for target in targets:
                target["labels"] += 1  # torchvision's 0 is the background
            yield batch.images, targets


def small_model():
    """Faster R-CNN with four convolutions instead of a ResNet, so that a step takes a moment on a CPU."""
    layers = []
    for channels, wider in zip((3, 16, 32, 32), (16, 32, 32, 32)):
        layers += [torch.nn.Conv2d(channels, wider, 3, stride=2, padding=1), torch.nn.ReLU()]
    backbone = torch.nn.Sequential(*layers)
    backbone.out_channels = 32
    return FasterRCNN(
        backbone,
        min_size=96,
        max_size=160,
        rpn_anchor_generator=AnchorGenerator(((16, 32, 64),), ((0.5, 1.0, 2.0),)),
        rpn_post_nms_top_n_train=100,
        box_roi_pool=MultiScaleRoIAlign(["0"], 5, 2),
        box_head=TwoMLPHead(32 * 5 * 5, 64),
        box_predictor=FastRCNNPredictor(64, 1 + len(CLASSES)),
        box_batch_size_per_image=32,
    )


def main():
    if arguments.make is not None:
        make(Path(arguments.make))
        return
    torch.manual_seed(0)
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    model.train()
    batches = (from_files if arguments.files else from_shards)(Path(arguments.data))
    for step, (images, targets) in zip(range(arguments.steps), batches):
        # Faster R-CNN draws random proposals, and a DataLoader draws a number from the same generator.
        torch.manual_seed(step)
        losses = model([image / 255 for image in images], targets)
        loss = sum(losses.values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        named = " ".join(f"{name[5:]} {value.item():.6f}" for name, value in sorted(losses.items()))
        print(f"step {step + 1} loss {loss.item():.6f} {named}")
    batches.close()


main()
