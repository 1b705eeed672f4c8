"""Names of folds. A fold of a dataset has another part of its images as test, and the
rest as training.

Fold 3 of flickr8k is a dataset of its own, `flickr8k_fold3`; fold 0, the split of the
authors, is `flickr8k` itself. What git keeps of all folds of a dataset lies in one
folder, `flickr8k_folds`, where the names of each fold begin with its number.
"""

import re
from dataclasses import dataclass

NAME = re.compile(r"(?P<dataset>.+)_fold(?P<number>[1-9][0-9]*)")
FOLDER = "_folds"  # end of its name


@dataclass(frozen=True)
class Fold:
    dataset: str  # that it is a fold of
    number: int  # from 1

    @property
    def name(self) -> str:
        """As a dataset of its own."""
        return f"{self.dataset}_fold{self.number}"


def folds_of(dataset: str, count: int) -> list[Fold]:
    """Those of a dataset with `count` folds, without fold 0."""
    return [Fold(dataset, number) for number in range(1, count)]


def fold_of(name: str) -> Fold | None:
    """The fold of that name; None for a dataset that is none."""
    match = NAME.fullmatch(name)
    return Fold(match["dataset"], int(match["number"])) if match else None


def whole_of(name: str) -> str:
    """The dataset that a fold is of; of another name, itself."""
    fold = fold_of(name)
    return fold.dataset if fold else name


def folder_of_folds(dataset: str) -> str:
    """The folder of what git keeps of all folds of a dataset."""
    return f"{dataset}{FOLDER}"


def folder_of(name: str) -> str:
    """The folder of what git keeps of a dataset, or of a fold."""
    fold = fold_of(name)
    return folder_of_folds(fold.dataset) if fold else name


def prefix_of(name: str) -> str:
    """What the names in that folder begin with: those of a fold with "3/"."""
    fold = fold_of(name)
    return f"{fold.number}/" if fold else ""


def is_reserved(name: str) -> bool:
    """Whether a dataset of this name would be taken for a fold, or for their
    folder."""
    return name.endswith(FOLDER) or fold_of(name) is not None
