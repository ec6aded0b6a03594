"""Trains a model of timm with the transforms of timm. A run that was stopped resumes with the next batch.

python examples/frameworks/train_timm.py --data shards/ --stop-after 3
python examples/frameworks/train_timm.py --data shards/ --resume
"""

import argparse

import timm
import torch

import shardtool.timm


def main() -> None:
    options = argparse.ArgumentParser(description="Trains a model of timm.")
    options.add_argument("--data", required=True, help="a dataset that `shardtool pack` wrote")
    options.add_argument("--model", default="test_resnet")
    options.add_argument("--size", type=int, default=64, help="height and width of the crops")
    options.add_argument("--epochs", type=int, default=2)
    options.add_argument("--batch-size", type=int, default=16)
    options.add_argument("--stop-after", type=int, help="stop after this number of batches")
    options.add_argument("--checkpoint", default="checkpoint.pt")
    options.add_argument("--resume", action="store_true")
    args = options.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    common = {"input_size": (3, args.size, args.size), "batch_size": args.batch_size, "device": device}
    train = shardtool.timm.create_loader(
        args.data, is_training=True, interpolation="random", auto_augment="rand-m9-mstd0.5-inc1", **common
    )
    evaluate = shardtool.timm.create_loader(args.data, interpolation="bicubic", crop_pct=0.95, **common)
    torch.manual_seed(42)
    with shardtool.Dataset(args.data) as dataset:
        model = timm.create_model(args.model, num_classes=len(dataset.classes)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    if args.resume:
        saved = torch.load(args.checkpoint, map_location=device)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        train.load_state_dict(saved["loader"])

    batches = 0
    for epoch in range(train.state_dict()["epoch"], args.epochs):
        model.train()
        for images, targets in train:
            loss = torch.nn.functional.cross_entropy(model(images), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} loss {loss.item():.4f}")
            batches += 1
            if batches == args.stop_after:
                saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": train.state_dict()}
                torch.save(saved, args.checkpoint)
                return
        model.eval()
        right = counted = 0
        for images, targets in evaluate:
            with torch.no_grad():
                right += int((model(images).argmax(1) == targets).sum())
            counted += len(targets)
        print(f"accuracy {right / counted:.4f} of {counted}")


if __name__ == "__main__":
    main()
