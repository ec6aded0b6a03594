"""Trains torchvision's resnet18 on shards, on the CPU, and resumes exactly where it was stopped.

    npx shardtool pack examples/photos shards
    python examples/train_resnet.py                             # three epochs
    python examples/train_resnet.py --stop-after 5              # stops as if the process was killed
    python examples/train_resnet.py --resume                    # the same losses as without the stop

train_resnet_dataloader.py is the same with ImageFolder and torch's DataLoader: `diff` shows what changes.
"""

import argparse

import torch
import torchvision
from torch.nn.functional import cross_entropy

import shardtool

parser = argparse.ArgumentParser(description="Trains resnet18 on shards.")
parser.add_argument("--data", default="shards", help="a folder that `shardtool pack` wrote")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=10)
parser.add_argument("--size", type=int, default=224, help="height and width of the crops")
parser.add_argument("--checkpoint", default="checkpoint.pt")
parser.add_argument("--resume", action="store_true", help="resume from the checkpoint")
parser.add_argument("--stop-after", type=int, help="stop after this number of batches")
arguments = parser.parse_args()

train = [
    {"name": "random_resized_crop", "size": arguments.size},
    {"name": "random_horizontal_flip"},
    {"name": "normalize", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]},
]
torch.manual_seed(0)
try:
    loader = shardtool.Loader(arguments.data, batch_size=arguments.batch_size, transform=train, seed=0)
    model = torchvision.models.resnet18(num_classes=len(loader.classes))
except shardtool.ShardtoolError as error:
    raise SystemExit(str(error)) from None
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
first_epoch = steps = 0
if arguments.resume:
    saved = torch.load(arguments.checkpoint)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    loader.load_state_dict(saved["loader"])
    first_epoch, steps = saved["epoch"], saved["steps"]

model.train()
for epoch in range(first_epoch, arguments.epochs):
    loader.set_epoch(epoch)
    for images, labels in loader:
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        print(f"epoch {epoch} step {steps} loss {loss.item():.6f}")
        if steps == arguments.stop_after:
            break
    # After any batch: the loader's state is exact to the sample.
    saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}
    torch.save({**saved, "epoch": epoch, "steps": steps}, arguments.checkpoint)
    if steps == arguments.stop_after:
        break
loader.close()
