"""torchvision's part of detection.mjs.

detection_torchvision.py make FOLDER WIDTH HEIGHT COUNT    photos of that size with boxes, and annotations.json in COCO's format
detection_torchvision.py rate FOLDER SIDE WORKERS BATCH    images per second of torchvision's large-scale jitter preset on them
"""
import json
import os
import sys
import time
from pathlib import Path

PHOTOS = Path(__file__).resolve().parent.parent / 'examples' / 'photos'


def make(folder, width, height, count):
    import numpy as np
    from PIL import Image

    random = np.random.default_rng(5)
    photos = sorted(PHOTOS.glob('*/*.jpg'))
    images, annotations = [], []
    (folder / 'images').mkdir(parents=True, exist_ok=True)
    for i in range(count):
        name = f'{i:05}.jpg'
        photo = Image.open(photos[i % len(photos)]).convert('RGB').resize((width, height), Image.BICUBIC)
        photo.save(folder / 'images' / name, quality=90)
        images.append({'id': i, 'file_name': name, 'width': width, 'height': height})
        for _ in range(7):
            x, y = random.uniform(0, [width * 0.7, height * 0.7])
            w, h = random.uniform(8, [width * 0.3, height * 0.3])
            box = [round(float(value), 2) for value in (x, y, w, h)]
            annotations.append(
                {'id': len(annotations), 'image_id': i, 'category_id': 1, 'bbox': box, 'area': w * h, 'iscrowd': 0}
            )
    categories = [{'id': 1, 'name': 'thing'}]
    text = json.dumps({'images': images, 'annotations': annotations, 'categories': categories})
    (folder / 'annotations.json').write_text(text)


def rate(folder, side, workers, batch):
    import torch
    from torchvision import io, tv_tensors
    from torchvision.transforms import v2

    listed = json.loads((folder / 'annotations.json').read_text())
    boxes = {image['id']: [] for image in listed['images']}
    for annotation in listed['annotations']:
        boxes[annotation['image_id']].append(annotation['bbox'])
    transform = v2.Compose(
        [
            v2.ScaleJitter((side, side)),
            v2.RandomCrop((side, side), pad_if_needed=True),
            v2.RandomHorizontalFlip(),
            v2.SanitizeBoundingBoxes(),
            v2.ToDtype(torch.float32, scale=True),
        ]
    )

    class Images(torch.utils.data.Dataset):
        def __len__(self):
            return len(listed['images'])

        def __getitem__(self, i):
            image = listed['images'][i]
            pixels = io.decode_jpeg(io.read_file(str(folder / 'images' / image['file_name'])), mode=io.ImageReadMode.RGB)
            found = torch.tensor(boxes[image['id']], dtype=torch.float32).reshape(-1, 4)
            found[:, 2:] += found[:, :2]
            sample = {
                'image': tv_tensors.Image(pixels),
                'boxes': tv_tensors.BoundingBoxes(found, format='XYXY', canvas_size=pixels.shape[-2:]),
                'labels': torch.ones(len(found), dtype=torch.int64),
            }
            return transform(sample)

    def collate(samples):
        images = torch.stack([sample['image'].as_subclass(torch.Tensor) for sample in samples])
        return images, [{name: sample[name] for name in ('boxes', 'labels')} for sample in samples]

    loader = torch.utils.data.DataLoader(
        Images(), batch, shuffle=True, num_workers=workers, collate_fn=collate, persistent_workers=True
    )
    for _ in range(2):
        start = time.perf_counter()
        images = sum(len(batch_images) for batch_images, _ in loader)
        seconds = time.perf_counter() - start
    print(images / seconds)


if __name__ == '__main__':
    os.environ.setdefault('OMP_NUM_THREADS', '1')
    what, folder, *numbers = sys.argv[1:]
    {'make': make, 'rate': rate}[what](Path(folder), *map(int, numbers))
