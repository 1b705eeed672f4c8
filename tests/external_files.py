"""Files that were made elsewhere, for a season that was run: what `score` reads."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
from oracles import ranking
from refusals import refusal
from report_seasons import CAPTIONS, IMAGES, OWNERS

from benchmark.__main__ import main
from benchmark.commands import score as command
from benchmark.core.errors import UserError
from benchmark.data import results
from benchmark.data.prepared_tables import JUDGED
from benchmark.data.results import CellResult

IMAGE_IDS = [f"i{number}" for number in range(IMAGES)]
CAPTION_IDS = [f"c{number}" for number in range(CAPTIONS)]


def embeddings(noise: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Captions (C, 5) near their images (I, 5)."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(IMAGES, 5)).astype(np.float32)
    return images, (images[OWNERS] + noise * rng.normal(size=(CAPTIONS, 5))).astype(
        np.float32
    )


def ranked(scores_QG: np.ndarray, relevant_QG: np.ndarray) -> list[int]:
    return ranking.best_ranks(scores_QG, [np.flatnonzero(row) for row in relevant_QG])


def score(*words: object, name: str = "clip") -> int:
    return main(["score", "--dataset", "open", "--name", name, *map(str, words)])


def refused_score(*words: object, name: str = "clip") -> UserError:
    return refusal(command, "--dataset", "open", "--name", name, *words)


def record(name: str = "clip", seed: int = 0):
    return result(name, seed).record


def result(name: str = "clip", seed: int = 0) -> CellResult:
    return results.read_kept("try", "open")[f"{name}/{seed}"]


def save_pair(images: np.ndarray, captions: np.ndarray) -> tuple[str, ...]:
    np.save("a.npy", images)
    np.save("b.npy", captions)
    return ("--images", "a.npy", "--captions", "b.npy")


def three_pairs() -> SimpleNamespace:
    """A dataset of three test images with a caption each."""
    rows = np.arange(3)
    split = SimpleNamespace(
        image_rows=rows,
        caption_rows=rows,
        group_of_image=rows,
        group_of_caption=rows,
        image_of_caption=rows,
    )
    return SimpleNamespace(
        judged=pd.DataFrame(columns=JUDGED),
        split=lambda name: split,
        images=pd.DataFrame({"image_id": list("abc"), "file": list("abc")}),
        captions=pd.DataFrame({"caption_id": list("xyz"), "text": list("xyz")}),
        card={"ways": ["i2t", "t2i"], "folds": 1},
    )
