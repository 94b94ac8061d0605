"""Trains a network of PyTorch on the decoded images of a table, and audits it: `python examples/torch_images.py cohort.csv`.

The table has the columns image, person, time, event and sex; the images lie in one file of the cache, which the loader reads without
a copy. The loss is that of the logistic hazard of ten intervals.
"""

import sys
import warnings

import numpy as np
import torch

import fairtte.data

warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # nothing writes to the images

cohort = fairtte.data.table(sys.argv[1], image="image", subject="person", attributes=["sex"], time_unit="years")
store, split = cohort.images("cache", size=(64, 64), images_per_shard=len(cohort)), cohort.split(0, stratify=["event", "sex"])
place, time, event, sex = store.rows(cohort.to_pandas()["sample_id"]), cohort.time, cohort.event, cohort.groups()
edges = np.quantile(time[split.train][event[split.train]], np.arange(1, 11) / 10)


class Images(torch.utils.data.Dataset):
    def __init__(self, rows):
        self.rows = rows[place[rows] >= 0]  # images that could be decoded

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, k):
        row = self.rows[k]
        return torch.from_numpy(store[place[row]]), time[row], event[row]


def loss(logits, time, event):
    at_risk = time[:, None] > torch.from_numpy(np.concatenate([[0.0], edges[:-1]]))
    fails = at_risk & (time[:, None] <= torch.from_numpy(edges)) & event[:, None]
    return (torch.nn.functional.binary_cross_entropy_with_logits(logits, fails.float(), reduction="none") * at_risk).sum(1).mean()


torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 8, 5, 4), torch.nn.ReLU(), torch.nn.Conv2d(8, 16, 3, 2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
    torch.nn.Flatten(), torch.nn.Linear(16, 10),
)  # fmt: skip
optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
for _ in range(10):
    for images, times, events in torch.utils.data.DataLoader(Images(split.train), batch_size=32, shuffle=True):
        optimiser.zero_grad()
        loss(model(images.float() / 255 - 0.5), times, events).backward()
        optimiser.step()

test = Images(split.test)
with torch.no_grad():
    batches = torch.utils.data.DataLoader(test, batch_size=256)
    survival = torch.cat([torch.cumprod(1 - torch.sigmoid(model(images.float() / 255 - 0.5)), 1) for images, *_ in batches])
found = fairtte.evaluate(
    survival, edges, time[test.rows], event[test.rows], groups=sex.iloc[test.rows],
    train=(time[split.train], event[split.train]), time_unit=cohort.time_unit, name="network of PyTorch",
)  # fmt: skip
print(found)
found.report("report.html")
