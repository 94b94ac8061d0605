"""One epoch of a PyTorch DataLoader over the images of a table, decoded by Pillow each time: what `ingest.rs` saves.

python dataloader.py COHORT.csv [SIDE [WORKERS]]
"""

import csv
import os
import sys
import time

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, table, side):
        folder = os.path.dirname(os.path.abspath(table))
        with open(table, newline="") as rows:
            self.paths = [os.path.join(folder, row["image"]) for row in csv.DictReader(rows)]
        self.side = side

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, at):
        image = Image.open(self.paths[at]).convert("RGB").resize((self.side, self.side), Image.BILINEAR)
        # What torchvision's ToTensor does.
        return torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1).contiguous().float().div(255)


if __name__ == "__main__":
    side = int(sys.argv[2]) if len(sys.argv) > 2 else 224
    workers = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    pictures = Pictures(sys.argv[1], side)
    loader = DataLoader(pictures, batch_size=64, shuffle=True, num_workers=workers)
    for epoch in range(2):
        begin = time.perf_counter()
        total = sum(float(batch.mean()) for batch in loader)
        seconds = time.perf_counter() - begin
        print(f"epoch {epoch}: {seconds:.3f} s, {len(pictures) / seconds:.0f} images per second (sum {total:.3f})")
