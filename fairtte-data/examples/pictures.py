"""Speed and difference of `examples/pictures.rs` against Pillow's open().resize() on the same files, one thread each.

usage: python pictures.py BINARY film|fundus|FILE..    (needs pillow and numpy)

`film` and `fundus` generate textured pictures: gray 2544 x 3056 at quality 95, colour 1000 x 1000 at 4:2:0. The programs
take turns within each round, because machines change their speed; the median of the rounds' ratios is shown.
"""
import statistics, subprocess, sys, tempfile, time
from pathlib import Path

import numpy as np
from PIL import Image

SIZE, ROUNDS = 224, 9


def smooth(rng, height, width, cell):
    coarse = rng.normal(0, 1, (height // cell + 2, width // cell + 2)).astype(np.float32)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.BICUBIC))


def film(rng, path, grain):
    height, width = 3056, 2544
    pixels = 120 + 45 * smooth(rng, height, width, 400) + 18 * smooth(rng, height, width, 40)
    pixels += 6 * smooth(rng, height, width, 6) + rng.normal(0, grain, (height, width))
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path, quality=95)


def fundus(rng, path):
    side = 1000
    base = 110 + 30 * smooth(rng, side, side, 200) + 14 * smooth(rng, side, side, 20) + rng.normal(0, 2.5, (side, side))
    rows, columns = np.mgrid[0:side, 0:side] - side / 2
    inside = (rows**2 + columns**2 < (0.48 * side) ** 2)[..., None]
    colours = np.stack([base * 1.3, base * 0.75, base * 0.4], -1) * inside
    Image.fromarray(colours.clip(0, 255).astype(np.uint8)).save(path, quality=92, subsampling=2)


def main(binary, files):
    folder = Path(tempfile.mkdtemp())
    rng = np.random.default_rng(1)
    if files == ["film"]:
        files = [folder / f"film{i}.jpg" for i in range(8)]
        [film(rng, path, 1.6 if i % 2 else 3.2) for i, path in enumerate(files)]
    elif files == ["fundus"]:
        files = [folder / f"fundus{i}.jpg" for i in range(20)]
        [fundus(rng, path) for path in files]
    files = [str(path) for path in files]
    gray = Image.open(files[0]).mode == "L"
    channels = 1 if gray else 3
    sizes = [Path(path).stat().st_size for path in files]
    print(f"{len(files)} files, {min(sizes) / 1e6:.2f} to {max(sizes) / 1e6:.2f} MB, {channels} channels, Pillow {Image.__version__}")

    def pillow():
        begin = time.perf_counter()
        out = [np.asarray(Image.open(path).resize((SIZE, SIZE), Image.BILINEAR)) for path in files]
        return (time.perf_counter() - begin) * 1e3, out

    def ours(mode):
        out = folder / f"{mode}.raw"
        text = subprocess.run([binary, str(SIZE), str(channels), mode, out, *files], capture_output=True, text=True, check=True).stdout
        raw = np.fromfile(out, np.uint8).reshape(len(files), channels, SIZE, SIZE)
        return float(text), raw

    ratios = {"exact": [], "scaled": []}
    for _ in range(ROUNDS):
        reference, expected = pillow()
        for mode in ratios:
            elapsed, raw = ours(mode)
            ratios[mode].append(reference / elapsed)
    expected = np.stack([e[None] if gray else np.moveaxis(e, -1, 0) for e in expected]).astype(int)
    print(f"Pillow {reference / len(files):.1f} ms per file in the last round")
    for mode, values in ratios.items():
        difference = np.abs(ours(mode)[1] - expected)
        print(f"{mode}: {statistics.median(values):.2f} times as fast ({min(values):.2f} to {max(values):.2f}); "
              f"difference mean {difference.mean():.3f}, largest {difference.max()}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
