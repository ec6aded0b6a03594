"""Trains with Lightning, on one device or several. A run that was stopped resumes with the next batch.

python examples/frameworks/train_lightning.py --data shards/ --devices 2 --max-steps 3
python examples/frameworks/train_lightning.py --data shards/ --devices 2 --resume checkpoints/last.ckpt
"""

import argparse

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

import shardtool
from shardtool.lightning import DataModule

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class Classifier(lightning.LightningModule):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.model = torch.nn.Sequential(
            *(torch.nn.Conv2d(3, 16, 3, stride=4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()),
            torch.nn.Linear(16, classes),
        )

    def training_step(self, batch, index):
        # Rows that only pad the end of an epoch do not count.
        losses = torch.nn.functional.cross_entropy(self.model(batch.images), batch.labels, reduction="none")
        return losses[batch.valid].sum() / max(1, int(batch.valid.sum()))

    def validation_step(self, batch, index):
        right = (self.model(batch.images).argmax(1) == batch.labels) & batch.valid.to(batch.labels.device)
        # Sums over all batches and devices: each sample counts once.
        sums = {"right": right.sum().float(), "counted": batch.valid.sum().float()}
        self.log_dict(sums, reduce_fx="sum", sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.05, momentum=0.9)


def main() -> None:
    options = argparse.ArgumentParser(description="Trains with Lightning.")
    options.add_argument("--data", required=True, help="a dataset that `shardtool pack` wrote")
    options.add_argument("--size", type=int, default=64, help="height and width of the crops")
    options.add_argument("--epochs", type=int, default=2)
    options.add_argument("--batch-size", type=int, default=16, help="rows over all devices")
    options.add_argument("--devices", type=int, default=1)
    options.add_argument("--max-steps", type=int, default=-1, help="stop after this number of steps")
    options.add_argument("--resume", help="a checkpoint")
    args = options.parse_args()

    normalize = {"name": "normalize", "mean": MEAN, "std": STD}
    crop = [{"name": "random_resized_crop", "size": args.size}, {"name": "random_horizontal_flip"}, normalize]
    center = [{"name": "resize", "size": args.size}, {"name": "center_crop", "size": args.size}, normalize]
    rows = {"global_batch_size": args.batch_size}
    data = DataModule(
        train=shardtool.iterable_dataset(args.data, transform=crop, seed=42, **rows),
        val=shardtool.iterable_dataset(args.data, transform=center, shuffle=False, **rows),
    )
    trainer = lightning.Trainer(
        devices=args.devices, max_epochs=args.epochs, max_steps=args.max_steps, logger=False, enable_progress_bar=False,
        callbacks=[ModelCheckpoint("checkpoints", every_n_train_steps=1, save_last=True)],
    )  # fmt: skip
    lightning.seed_everything(42)
    with shardtool.Dataset(args.data) as dataset:
        model = Classifier(len(dataset.classes))
    trainer.fit(model, data, ckpt_path=args.resume, weights_only=False)
    if trainer.is_global_zero and "counted" in trainer.callback_metrics:
        right, counted = (trainer.callback_metrics[name].item() for name in ("right", "counted"))
        print(f"accuracy {right / counted:.4f} of {counted:.0f}")


if __name__ == "__main__":
    main()
