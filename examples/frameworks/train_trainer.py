"""Trains a ViT with the Trainer of Hugging Face's transformers. A run that was stopped resumes with the next batch.

torchrun --nproc_per_node=2 examples/frameworks/train_trainer.py --data shards/ --max-steps 3
torchrun --nproc_per_node=2 examples/frameworks/train_trainer.py --data shards/ --resume
"""

import argparse
import os

import torch
from transformers import TrainingArguments, ViTConfig, ViTForImageClassification

import shardtool
from shardtool.transformers import ShardTrainer

MEAN, STD = [0.5, 0.5, 0.5], [0.5, 0.5, 0.5]


def accuracy(found):
    return {"accuracy": float((found.predictions.argmax(-1) == found.label_ids).mean()), "rows": len(found.label_ids)}


def main() -> None:
    options = argparse.ArgumentParser(description="Trains a ViT with the Trainer of transformers.")
    options.add_argument("--data", required=True, help="a dataset that `shardtool pack` wrote")
    options.add_argument("--size", type=int, default=32, help="height and width of the crops")
    options.add_argument("--epochs", type=int, default=2)
    options.add_argument("--batch-size", type=int, default=16, help="rows over all processes")
    options.add_argument("--max-steps", type=int, default=-1, help="stop after this number of steps")
    options.add_argument("--output", default="trained")
    options.add_argument("--resume", action="store_true")
    args = options.parse_args()

    normalize = {"name": "normalize", "mean": MEAN, "std": STD}
    crop = [{"name": "random_resized_crop", "size": args.size}, {"name": "random_horizontal_flip"}, normalize]
    center = [{"name": "resize", "size": args.size}, {"name": "center_crop", "size": args.size}, normalize]
    train = shardtool.iterable_dataset(args.data, transform=crop, seed=42)
    evaluate = shardtool.iterable_dataset(args.data, transform=center, shuffle=False)

    rows = args.batch_size // int(os.environ.get("WORLD_SIZE", 1))
    settings = TrainingArguments(
        output_dir=args.output, num_train_epochs=args.epochs, max_steps=args.max_steps, seed=42,
        per_device_train_batch_size=rows, per_device_eval_batch_size=rows, save_steps=1, logging_steps=1,
        eval_strategy="epoch", report_to=[], disable_tqdm=True, use_cpu=not torch.cuda.is_available(),
    )  # fmt: skip
    torch.manual_seed(42)
    model = ViTForImageClassification(
        ViTConfig(
            image_size=args.size, patch_size=8, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
            num_attention_heads=2, num_labels=len(train.classes),
        )
    )  # fmt: skip
    trainer = ShardTrainer(model, settings, train_dataset=train, eval_dataset=evaluate, compute_metrics=accuracy)
    trainer.train(resume_from_checkpoint=args.resume or None)
    for log in trainer.state.log_history:
        if "eval_rows" in log and settings.process_index == 0:
            print(f"evaluated rows {log['eval_rows']} accuracy {log['eval_accuracy']:.4f}")


if __name__ == "__main__":
    main()
