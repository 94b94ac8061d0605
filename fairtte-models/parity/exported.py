"""Curves of an exported model by torch, beside those of the run: exported.py RUN MODEL.safetensors.

Reads MODEL.safetensors and MODEL.json (`fairtte weights export RUN -o MODEL.safetensors`), builds the network with
torchvision, timm or plain torch, and prints the largest difference of its curves to RUN/predictions.parquet. Images must have the size
of the run (nothing is resized here); volumes are NIfTI files with an affine of ones on the diagonal, as `fairtte simulate`
writes them. Strategies with one network, all heads; grids of cut points and finer ones.
"""

import gzip
import json
import sys
import tomllib
from pathlib import Path

import numpy as np
import pyarrow.csv as csv
import pyarrow.parquet as pq
import torch
from PIL import Image
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F

AFTER = ("projection.", "target.", "classifier.")


def small(n_axes, channels, weights):
    conv, norm, pool = (nn.Conv2d, nn.BatchNorm2d, nn.AdaptiveAvgPool2d) if n_axes == 2 else (
        nn.Conv3d, nn.BatchNorm3d, nn.AdaptiveAvgPool3d)
    layers = []
    for k in range(4):
        out, inputs = weights[f"layers.{k}.conv.weight"].shape[:2]
        pair = nn.Sequential()
        pair.add_module("conv", conv(inputs, out, 3, stride=2, padding=1, bias=False))
        pair.add_module("norm", norm(out))
        layers += [pair, nn.ReLU()]
    return nn.Sequential(*layers, pool(1), nn.Flatten()), {k: 2 * k for k in range(4)}


def mlp(weights):
    layers, places, k = [], {}, 0
    while f"layers.{k}.dense.weight" in weights:
        out, inputs = weights[f"layers.{k}.dense.weight"].shape
        layer = nn.Sequential()
        layer.add_module("dense", nn.Linear(inputs, out))
        layer.add_module("activation", nn.ReLU())
        if f"layers.{k}.norm.gamma" in weights:
            layer.add_module("norm", nn.BatchNorm1d(out))
        places[k] = len(layers)
        layers.append(layer)
        k += 1
    return nn.Sequential(*layers), places


def backbone(about, weights):
    name, channels = about["backbone"]["name"], about["input"].get("channels")
    own = {k: v for k, v in weights.items() if not k.startswith(AFTER)}
    if about["backbone"]["library"] == "fairtte":
        net, places = mlp(own) if name == "mlp" else small(2 if name == "small-2d" else 3, channels, own)
        rename = lambda k: k.replace("gamma", "weight").replace("beta", "bias")
        own = {f"{places[int(k.split('.')[1])]}.{rename(k.split('.', 2)[2])}": v for k, v in own.items()}
    elif about["backbone"]["library"] == "torchvision":
        import torchvision

        if name == "efficientnet-b0":
            net = torchvision.models.efficientnet_b0()
            net.features[0][0] = nn.Conv2d(channels, 32, 3, stride=2, padding=1, bias=False)
            net.classifier = nn.Identity()
        elif name == "resnet18":
            net = torchvision.models.resnet18()
            net.conv1 = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
            net.fc = nn.Identity()
        else:
            net = torchvision.models.video.r3d_18()
            net.stem[0] = nn.Conv3d(channels, 64, (3, 7, 7), stride=(1, 2, 2), padding=(1, 3, 3), bias=False)
            net.fc = nn.Identity()
    else:
        import timm

        size = about["input"]["size"]
        net = eval(about["backbone"]["python"].replace("num_classes=0", f"num_classes=0, img_size={tuple(size)}"))
        grid = own["pos_embed"][:, 1:].reshape(1, 14, 14, -1).permute(0, 3, 1, 2)
        to = [side // 16 for side in size]
        if to != [14, 14]:
            grid = F.interpolate(grid, to, mode="bicubic", align_corners=False)
        patches = grid.permute(0, 2, 3, 1).reshape(1, to[0] * to[1], -1)
        own["pos_embed"] = torch.cat([own["pos_embed"][:, :1], patches], 1)
    net.load_state_dict(own)
    return net.eval()


def read(path, about):
    inputs = about["input"]
    if len(inputs["size"]) == 2:
        picture = Image.open(path).convert("L" if inputs["channels"] == 1 else "RGB")
        values = np.asarray(picture, np.float64)
        values = values[None] if inputs["channels"] == 1 else values.transpose(2, 0, 1)
    else:
        raw = gzip.open(path).read()
        shape = np.frombuffer(raw[42:48], "<i2")[::-1]
        kind = {2: "<u1", 4: "<i2", 8: "<i4", 16: "<f4", 64: "<f8", 512: "<u2"}[int(np.frombuffer(raw[70:72], "<i2")[0])]
        start = int(np.frombuffer(raw[108:112], "<f4")[0])
        slope, intercept = (float(v) for v in np.frombuffer(raw[112:120], "<f4"))
        values = np.frombuffer(raw[start:], kind).astype(np.float64).reshape(shape)
        values = values * (slope or 1.0) + intercept
        values = (values - values.min()) / (values.max() - values.min())
        values = np.repeat(np.round(values * 65535)[None], inputs["channels"], 0)
    assert list(values.shape[1:]) == list(inputs["resized-to"]), (values.shape, inputs["resized-to"])
    if "crop-begin" in inputs:
        for axis, (begin, side) in enumerate(zip(inputs["crop-begin"], inputs["size"]), 1):
            values = np.take(values, range(begin, begin + side), axis)
    way = inputs["intensity"]
    shape = (-1,) + (1,) * (values.ndim - 1)
    values = (values / inputs["full-scale"] - np.reshape(way["mean"], shape)) / np.reshape(way["standard-deviation"], shape)
    if way["per-image"]:
        axes = tuple(range(1, values.ndim))
        deviation = values.std(axes, keepdims=True)
        values = (values - values.mean(axes, keepdims=True)) / np.where(deviation > 1e-6, deviation, 1)
    return values.astype(np.float32)


def encode(table, about):
    columns = []
    for column in about["input"]["encodings"]["columns"]:
        cells = table[column["column"]].to_pylist()
        (kind, encoding), = column["encoding"].items() if isinstance(column["encoding"], dict) else [("presence", {})]
        if kind == "numeric":
            columns.append([(float(c) - encoding["mean"]) / encoding["standard-deviation"] for c in cells])
        elif kind == "categorical":
            columns += [[float(str(c) == level) for c in cells] for level in encoding["levels"]]
        if column["indicator"]:
            columns.append([float(c in (None, "")) for c in cells])
    return np.array(columns, np.float32).T


def linear(weights, name, x):
    return F.linear(x, weights[name + "weight"], weights.get(name + "bias"))


def classify(weights, network, z):
    hidden = network["classifier"] + "hidden."
    z = torch.relu(linear(weights, hidden, z)) if hidden + "weight" in weights else z
    return linear(weights, network["classifier"] + "output.", z)


def curves(about, network, outputs):
    head, grid, cuts = about["head"]["name"], np.array(about["grid"]["times"]), np.array(about["cut-points"])
    o = outputs.double().numpy()
    if head in ("cox", "cox-time"):
        base = network["baseline"]
        before = np.searchsorted(base["times"], grid, side="right")
        if head == "cox":
            hazard = np.concatenate([[0], base["cumulative"]])[before]
            return np.exp(-hazard * np.exp(o))
        steps = np.cumsum(np.exp(np.array(base["log-hazards"]) + o), 1)
        return np.exp(-np.concatenate([np.zeros((len(o), 1)), steps], 1)[:, before])
    lines = lambda values: np.stack([np.interp(grid, cuts, row) for row in values])
    softplus = np.logaddexp(0, o)
    if head == "pc-hazard":
        return np.exp(-lines(np.concatenate([np.zeros((len(o), 1)), np.cumsum(softplus, 1)], 1)))
    if head == "nnet-survival":
        survival = np.exp(-np.cumsum(softplus, 1))
    else:
        mass = np.exp(np.concatenate([o, np.zeros((len(o), 1))], 1) - np.maximum(o.max(1, keepdims=True), 0))
        mass /= mass.sum(1, keepdims=True)
        survival = np.cumsum(mass[:, ::-1], 1)[:, ::-1][:, 1:]
    return np.exp(-lines(-np.log(survival))) if about["grid"]["rule"] == "constant-hazard" else lines(survival)


def main(run, path):
    run, path = Path(run), Path(path)
    about, weights = json.loads(path.with_suffix(".json").read_text()), load_file(path)
    assert about["combination"]["rule"] == "one-network" and "recalibration" not in about, "one network only"
    network, net = about["networks"][0], backbone(about, weights)
    predicted = pq.read_table(run / "predictions.parquet")
    ids = predicted.column(0).to_pylist()
    data = tomllib.loads((run / "run.toml").read_text())["data"]
    if "tabular" in data:
        table = csv.read_csv(data["tabular"]["table"])
        known = dict(zip(map(str, table[data["tabular"]["subject"]].to_pylist()), encode(table, about)))
        inputs = np.stack([known[i] for i in ids])
    else:
        cohort = pq.read_table(run / "cohort.parquet")
        found = dict(zip(cohort["sample_id"].to_pylist(), cohort["image"].to_pylist()))
        inputs = np.stack([read(found[i], about) for i in ids])
    with torch.no_grad():
        z = torch.cat([net(torch.from_numpy(inputs[k:k + 16])) for k in range(0, len(ids), 16)])
        z = linear(weights, "projection.", z) if "projection.weight" in weights else z
        z = linear(weights, network["code"], z) if "code" in network else z
        scale = about["layers"].get("time-scale")
        if scale:
            times = np.array(network["baseline"]["times"])
            times = ((np.log1p(times) if scale["log"] else times) - scale["mean"]) / scale["deviation"]
            at = lambda t: classify(weights, network, torch.cat([z, torch.full((len(z), 1), float(t))], 1))
            outputs = torch.cat([at(t) for t in times], 1)
        else:
            outputs = classify(weights, network, z)
    expected = np.stack([predicted.column(k).to_numpy() for k in range(1, predicted.num_columns)], 1)
    assert [float(name) for name in predicted.column_names[1:]] == about["grid"]["times"]
    difference = np.abs(curves(about, network, outputs) - expected)
    spread = expected.std(0).max()
    print(f"{about['backbone']['name']}, {about['head']['name']}: {expected.shape[0]} curves at {expected.shape[1]} times, "
          f"largest difference {difference.max():.1e} (standard deviation between samples up to {spread:.1e})")


if __name__ == "__main__":
    main(*sys.argv[1:])
