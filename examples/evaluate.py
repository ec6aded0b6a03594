"""Evaluates a model on every sample of a dataset, and prints how often it is right for each class.

python examples/evaluate.py --data shards                   # resnet18 without weights; --weights FILE loads them
"""

import argparse

import torch
import torchvision
from torch.utils.data import DataLoader

import shardtool

parser = argparse.ArgumentParser(description="Evaluates resnet18 over shards.")
parser.add_argument("--data", default="shards", help="a folder of shards")
parser.add_argument("--weights", help="file that torch.save wrote from model.state_dict()")
parser.add_argument("--batch-size", type=int, default=10)
parser.add_argument("--size", type=int, default=224, help="height and width of the images")
parser.add_argument("--workers", type=int, default=2)
arguments = parser.parse_args()

transform = [
    {"name": "resize", "size": arguments.size * 8 // 7},
    {"name": "center_crop", "size": arguments.size},
    {"name": "normalize", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]},
]
torch.manual_seed(0)
try:
    dataset = shardtool.Dataset(arguments.data, transform=transform)
    model = torchvision.models.resnet18(num_classes=len(dataset.classes))
except shardtool.ShardtoolError as error:
    raise SystemExit(str(error)) from None
if arguments.weights:
    model.load_state_dict(torch.load(arguments.weights))
model.eval()

# Each worker process has its own reader. The order is that of the dataset.
right = torch.zeros(len(dataset.classes), dtype=torch.long)
seen = torch.zeros(len(dataset.classes), dtype=torch.long)
with torch.no_grad():
    for images, labels in DataLoader(dataset, batch_size=arguments.batch_size, num_workers=arguments.workers):
        found = model(images).argmax(dim=1)
        seen += torch.bincount(labels, minlength=len(seen))
        right += torch.bincount(labels[found == labels], minlength=len(right))
for name, correct, samples in zip(dataset.classes, right.tolist(), seen.tolist()):
    print(f"{name}: {correct} of {samples}")
print(f"all: {int(right.sum())} of {len(dataset)}")
