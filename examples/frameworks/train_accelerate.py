"""Trains with Hugging Face Accelerate, on one process or several. A run that was stopped resumes with the next batch.

accelerate launch examples/frameworks/train_accelerate.py --data shards/
accelerate launch examples/frameworks/train_accelerate.py --data shards/ --resume
"""

import argparse

import torch
from accelerate import Accelerator

import shardtool.accelerate

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def main() -> None:
    options = argparse.ArgumentParser(description="Trains with Hugging Face Accelerate.")
    options.add_argument("--data", required=True, help="a dataset that `shardtool pack` wrote")
    options.add_argument("--size", type=int, default=64, help="height and width of the crops")
    options.add_argument("--epochs", type=int, default=2)
    options.add_argument("--batch-size", type=int, default=16, help="rows over all processes")
    options.add_argument("--stop-after", type=int, help="stop after this number of batches")
    options.add_argument("--checkpoint", default="checkpoint")
    options.add_argument("--resume", action="store_true")
    args = options.parse_args()

    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    normalize = {"name": "normalize", "mean": MEAN, "std": STD}
    crop = [{"name": "random_resized_crop", "size": args.size}, {"name": "random_horizontal_flip"}, normalize]
    center = [{"name": "resize", "size": args.size}, {"name": "center_crop", "size": args.size}, normalize]
    common = {"global_batch_size": args.batch_size}
    train = shardtool.accelerate.prepare(accelerator, args.data, transform=crop, seed=42, **common)
    evaluate = shardtool.accelerate.prepare(
        accelerator, args.data, transform=center, shuffle=False, checkpoint=False, **common
    )
    torch.manual_seed(42)
    model = torch.nn.Sequential(
        *(torch.nn.Conv2d(3, 16, 3, stride=4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()),
        torch.nn.Linear(16, len(train.classes)),
    )
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.05, momentum=0.9))
    if args.resume:
        accelerator.load_state(args.checkpoint)

    batches = 0
    for _ in range(train.state_dict()["epoch"], args.epochs):
        model.train()
        for batch in train:
            images, labels = batch
            # Rows that only pad the end of an epoch do not count.
            losses = torch.nn.functional.cross_entropy(model(images), labels, reduction="none")
            loss = losses[batch.valid].sum() / max(1, int(batch.valid.sum()))
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            accelerator.print(f"epoch {batch.epoch} batch {batch.indices.tolist()} loss {loss.item():.4f}")
            batches += 1
            if batches == args.stop_after:
                accelerator.save_state(args.checkpoint)
                return
        model.eval()
        right = counted = 0
        for images, labels in evaluate:
            with torch.no_grad():
                found = model(images).argmax(1)
            # Without rows that only pad, each sample counts once.
            found, labels = accelerator.gather_for_metrics((found, labels))
            right += int((found == labels).sum())
            counted += len(labels)
        accelerator.print(f"accuracy {right / counted:.4f} of {counted}")


if __name__ == "__main__":
    main()
