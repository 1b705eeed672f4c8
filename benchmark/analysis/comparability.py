"""Where papers measured, and what of a board stands for it. Knows no torch.

A season names its datasets as it likes: it is the reader and the partition that tell what they are.
"""

from benchmark.analysis.boards import Board
from benchmark.papers.printed_tables import Paper
from benchmark.protocol import METRICS

READERS = {  # dataset of a place -> modules of datasets/ that read its images and captions
    "flickr30k": ("flickr30k", "flickr30k_entities"),
    "mscoco_1k": ("mscoco",),
    "mscoco_5k": ("mscoco",),
}
FOLDED = "mscoco_1k"  # a mean over folds of 1,000 images


def is_dataset(board: Board, place: str) -> bool:
    """Whether the board is of the dataset of a place, whatever its partition."""
    dataset = place.partition("/")[0]
    return board.card["reader"] in READERS.get(dataset, (dataset,))


def is_same(paper: Paper, board: Board, place: str) -> bool:
    """Whether the test images of a board are those that a paper measured at a place."""
    dataset, split = place.split("/")
    is_partition = board.card["split"] == paper.paper.splits.get(dataset)
    return is_dataset(board, place) and is_partition and split == "test"


def metric_at(board: Board, place: str | None, metric: str) -> str:
    """The metric of our records that stands for a paper's at a place: that of the folds, where the
    place is of folds, the board has some, and the metric is measured on them."""
    is_folded = place is not None and place.startswith(f"{FOLDED}/") and board.folds > 1
    return f"fold_{metric}" if is_folded and f"fold_{metric}" in METRICS else metric
