"""An epoch of a loader of PyTorch over decoded images of this package, beside the same with Pillow: `python benches/torch_loader.py
FOLDER [N]` writes N made-up films with their table there (for examples/torch_images.py too) and prints CPU seconds and images per
second, three epochs of each in turn."""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import fairtte.data

warnings.filterwarnings("ignore", "The given NumPy array is not writable")


def write(folder, n):
    """Films of 256 by 256 pixels on which the disease is a bright spot, and those of women show less of it."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:256, :256]
    sex, risk = rng.choice(["F", "M"], n), rng.normal(size=n)
    event_time, censored = rng.exponential(3 * np.exp(-risk)), rng.exponential(6.0, size=n)
    rows = ["image,person,time,event,sex"]
    for k in range(n):
        spot = np.exp(-((x - rng.integers(64, 192)) ** 2 + (y - rng.integers(64, 192)) ** 2) / 800)
        shown = 40 * risk[k] * (0.4 if sex[k] == "F" else 1.0)
        film = np.clip(120 + shown * (1 + spot) + rng.normal(scale=12, size=(256, 256)), 0, 255).astype(np.uint8)
        Image.fromarray(film).save(folder / f"{k}.png")
        rows.append(f"{k}.png,p{k},{min(event_time[k], censored[k]) + 1e-6:.6f},{int(event_time[k] <= censored[k])},{sex[k]}")
    (folder / "cohort.csv").write_text("\n".join(rows))


class OfStore(torch.utils.data.Dataset):
    def __init__(self, store):
        self.store = store

    def __len__(self):
        return len(self.store)

    def __getitem__(self, k):
        return torch.from_numpy(self.store[k])


class OfPillow(torch.utils.data.Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, k):
        with Image.open(self.paths[k]) as image:
            pixels = np.array(image.convert("L").resize((64, 64), Image.Resampling.BILINEAR))
        return torch.from_numpy(pixels)[None]


folder, n = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2000
folder.mkdir(parents=True, exist_ok=True)
if not (folder / "cohort.csv").exists():
    write(folder, n)
torch.set_num_threads(1)
begin = time.process_time()
cohort = fairtte.data.table(folder / "cohort.csv", image="image", subject="person", attributes=["sex"])
store = cohort.images(folder / "cache", size=(64, 64), images_per_shard=len(cohort), threads=1)
print(f"decoding once: {time.process_time() - begin:.2f} CPU s for {len(store)} images")
paths = [folder / image for image in cohort.to_pandas()["image"]]
for _ in range(3):
    for name, data in (("store", OfStore(store)), ("Pillow", OfPillow(paths))):
        begin, sum_of_pixels = time.process_time(), 0
        for batch in torch.utils.data.DataLoader(data, batch_size=64, shuffle=True):
            sum_of_pixels += int(batch.sum())
        seconds = time.process_time() - begin
        print(f"{name}: {seconds:.3f} CPU s, {len(data) / seconds:.0f} images/s, mean {sum_of_pixels / len(data) / 4096:.2f}")
