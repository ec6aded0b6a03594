"""Trains torchvision's resnet18 on image files, on the CPU, with torch's own DataLoader: what train_resnet.py replaces.

python examples/train_resnet_dataloader.py                  # three epochs
python examples/train_resnet_dataloader.py --resume         # starts at the epoch after the checkpoint
"""

import argparse

import torch
import torchvision
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from torchvision import transforms

parser = argparse.ArgumentParser(description="Trains resnet18 on image files.")
parser.add_argument("--data", default="examples/photos", help="a folder of class folders")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=10)
parser.add_argument("--size", type=int, default=224, help="height and width of the crops")
parser.add_argument("--checkpoint", default="checkpoint.pt")
parser.add_argument("--resume", action="store_true", help="resume from the checkpoint")
arguments = parser.parse_args()

train = transforms.Compose(
    [
        transforms.RandomResizedCrop(arguments.size),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
    ]
)
torch.manual_seed(0)
dataset = torchvision.datasets.ImageFolder(arguments.data, train)
loader = DataLoader(dataset, batch_size=arguments.batch_size, shuffle=True, num_workers=2, persistent_workers=True)
model = torchvision.models.resnet18(num_classes=len(dataset.classes))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
first_epoch = steps = 0
if arguments.resume:
    saved = torch.load(arguments.checkpoint)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    first_epoch, steps = saved["epoch"] + 1, saved["steps"]

model.train()
for epoch in range(first_epoch, arguments.epochs):
    for images, labels in loader:
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        print(f"epoch {epoch} step {steps} loss {loss.item():.6f}")
    # Saved only after whole epochs, because a DataLoader does not know its position within an epoch.
    saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save({**saved, "epoch": epoch, "steps": steps}, arguments.checkpoint)
