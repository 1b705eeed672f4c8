"""What an evaluation takes after encoding, at several sizes: its time over that of its product, and
its memory beside the encodings.

    python -m benchmark.checks.evaluation_sizes [IMAGES ...]

measures splits of so many images with five captions each (default: five sizes up to 20,000; the
largest alone takes minutes), each in a process of its own, and writes them to
evaluation_sizes.json, beside those of other sizes.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import normalize

from benchmark.checks.interleaved_runs import minima, timed
from benchmark.core import numerics
from benchmark.core.files import read_json, write_json
from benchmark.evaluate import evaluation
from benchmark.matching.score_stream import CAPTION_TILE, IMAGE_TILE, Encoded, ScoreStream
from benchmark.protocol import fusion

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_suffix(".json")
IMAGES = (1000, 2500, 5000, 10000, 20000)
EACH, SIZE = 5, 256  # captions of an image, numbers of an encoding
STATUS = Path("/proc/self/status")


def made_up_split(owners: np.ndarray, folds: int = 1) -> tuple[SimpleNamespace, SimpleNamespace]:
    """A split whose captions show the images `owners`, (C,), and the data that it is of. Every
    image has a caption."""
    images = int(owners.max()) + 1
    split = SimpleNamespace(
        group_of_image=np.arange(images),
        group_of_caption=owners,
        image_of_caption=owners,
        image_rows=np.arange(images),
        caption_rows=np.arange(len(owners)),
    )
    data = SimpleNamespace(
        card={"ways": ["i2t", "t2i"], "folds": folds},
        images=pd.DataFrame({"image_id": np.arange(images)}),
        captions=pd.DataFrame({"caption_id": np.arange(len(owners))}),
    )
    return split, data


def made_up_encodings(owners: np.ndarray) -> Encoded:
    """Those of a good model, of a split whose captions show the images `owners`."""
    images = int(owners.max()) + 1
    x = normalize(torch.randn(images, SIZE), dim=1)
    y = normalize(0.3 * x[owners] + torch.randn(len(owners), SIZE) / SIZE**0.5, dim=1)
    rng = np.random.default_rng(0)
    orders = rng.permutation(images), rng.permutation(len(owners))
    model = SimpleNamespace(similarity=lambda a, b: a[0] @ b[0].T)
    return Encoded(model, "", (x[orders[0]],), (y[orders[1]],), *orders)


def product(x: Tensor, y: Tensor) -> None:
    """All scores once, in the tiles of the stream. Frozen."""
    for rows in x.split(IMAGE_TILE):
        for columns in y.split(CAPTION_TILE):
            rows @ columns.T


def measured(images: int, rounds: int) -> dict[str, float]:
    """Of this process: seconds of one thread, and MB that came on top of the encodings."""
    torch.manual_seed(0)
    owners = np.repeat(np.arange(images), EACH)
    (split, data), encoded = made_up_split(owners), made_up_encodings(owners)
    before = peak_memory()

    def evaluate() -> None:
        evaluation.of_retrieval(ScoreStream([encoded], fusion.mean), data, split)

    def multiply() -> None:
        product(encoded.images[0], encoded.captions[0])

    times = [[timed(multiply), timed(evaluate)] for _ in range(rounds)]
    bare, own = minima(times)
    return {
        "images": images,
        "captions": EACH * images,
        "product_seconds": round(bare, 3),
        "seconds": round(own, 3),
        "over_product": round(own / bare, 2),
        "megabytes": round(peak_memory() - before),
        "numerics": numerics.current().mode,
    }


def peak_memory() -> float:
    """MB of this process at most so far; ru_maxrss counts that of the parent process as well."""
    return int(STATUS.read_text().partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def in_a_process(images: int, rounds: int) -> dict[str, float]:
    """`measured`, of a process that does nothing else."""
    call = "import json; from benchmark.checks.evaluation_sizes import measured"
    call += f"; print(json.dumps(measured({images}, {rounds})))"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", call], env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main(sizes: list[int]) -> None:
    for images in sizes or IMAGES:
        row = in_a_process(images, rounds=2 if images <= 5000 else 1)
        print(json.dumps(row), flush=True)
        known = read_json(TABLE)["sizes"] if TABLE.is_file() else []
        others = [other for other in known if other["images"] != images]
        write_json(TABLE, {"sizes": sorted([*others, row], key=lambda row: row["images"])})


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]])
