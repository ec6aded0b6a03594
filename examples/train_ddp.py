"""Trains resnet18 on shards in several processes (DistributedDataParallel, gloo). Each rank reads its own samples.

torchrun --nproc_per_node 2 examples/train_ddp.py --data shards
"""

import argparse

import torch
import torch.distributed
import torchvision
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import shardtool

parser = argparse.ArgumentParser(description="Trains resnet18 on shards in several processes.")
parser.add_argument("--data", default="shards", help="a folder of shards")
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--batch-size", type=int, default=10, help="rows of each rank")
parser.add_argument("--size", type=int, default=224, help="height and width of the crops")
arguments = parser.parse_args()

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
torch.manual_seed(0)
torch.set_num_threads(1)
transform = [
    {"name": "random_resized_crop", "size": arguments.size},
    {"name": "random_horizontal_flip"},
    {"name": "normalize", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]},
]
# torchrun sets rank and number of ranks. All ranks have the same number of batches, so none waits for another.
with shardtool.Loader(arguments.data, batch_size=arguments.batch_size, transform=transform, seed=1) as loader:
    model = DistributedDataParallel(torchvision.models.resnet18(num_classes=len(loader.classes)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(arguments.epochs):
        loader.set_epoch(epoch)
        samples = torch.zeros(1)
        for batch in loader:
            images, labels = batch
            # Rows that pad the last batch do not count.
            loss = cross_entropy(model(images)[batch.valid], labels[batch.valid])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += int(batch.valid.sum())
        torch.distributed.all_reduce(samples)
        if rank == 0:
            print(f"epoch {epoch}: {int(samples)} samples over {torch.distributed.get_world_size()} ranks")
torch.distributed.destroy_process_group()
