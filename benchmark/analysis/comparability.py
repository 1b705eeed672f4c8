"""Which boards can be compared with a place where a paper measured. Knows no torch.

A place is dataset/split, for example mscoco_1k/test. A season may give its datasets any names: the
reader and the partition in their cards identify them.
"""

from benchmark.analysis.boards import Board
from benchmark.papers.claimed_quantities import MINUS, sides
from benchmark.papers.printed_tables import Paper
from benchmark.protocol import METRICS

READERS = {  # dataset of a place -> modules of datasets/ that read the same images and captions
    "flickr30k": ("flickr30k", "flickr30k_entities"),
    "mscoco_1k": ("mscoco",),
    "mscoco_5k": ("mscoco",),
}
FOLDED = "mscoco_1k"  # the papers print means over folds of 1,000 images


def is_dataset(board: Board, place: str) -> bool:
    """Whether the board has the images of a place's dataset, in whatever partition."""
    dataset = place.partition("/")[0]
    return board.card["reader"] in READERS.get(dataset, (dataset,))


def is_same(paper: Paper, board: Board, place: str) -> bool:
    """Whether the test images of the board are those that the paper measured at the place."""
    dataset, split = place.split("/")
    is_partition = board.card["split"] == paper.paper.splits.get(dataset)
    return is_dataset(board, place) and is_partition and split == "test"


def metric_at(board: Board, place: str | None, metric: str) -> str:
    """The metric of the board's records that corresponds to a paper's metric at a place: the mean
    over folds where the place has folds, the board has folds, and the metric is declared on them;
    else the metric itself."""
    is_folded = place is not None and place.startswith(f"{FOLDED}/") and board.folds > 1
    if not is_folded:
        return metric
    folded = [f"fold_{s}" if f"fold_{s}" in METRICS else s for s in sides(metric)]
    return MINUS.join(folded)
