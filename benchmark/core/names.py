"""Names, paths and texts from files: what may be stored, opened, and put into a
command.

Names of seasons, datasets, presets, encoders and methods become folders, file names,
stages of DVC, words of shell commands and links in reports. So a name has letters,
digits, `_` and `-` alone, and begins with a letter or a digit.

Fold 3 of flickr8k is a dataset of its own, `flickr8k_fold3`; fold 0, the split of the
authors, is `flickr8k` itself. What git keeps of all folds of a dataset lies in one
folder, `flickr8k_folds`, where the names of each fold begin with its number.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from benchmark.core.errors import UserError, short

LONGEST = 64  # characters: a file name holds several names
PATTERN = rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{LONGEST - 1}}}"
EXPECTED = (
    f"a name of 1 to {LONGEST} letters, digits, _ and -, the first a letter or a digit"
)
LONGEST_FILE_NAME, LONGEST_PATH = 255, 1024  # bytes, as in most file systems
LONGEST_TEXT = 10_000  # characters of a caption or phrase
FOLD = re.compile(r"(?P<dataset>.+)_fold(?P<number>[1-9][0-9]*)")
FOLDS = "_folds"  # end of the name of the folder of all folds of a dataset


def _named(name: str) -> str:
    if not re.fullmatch(PATTERN, name):
        raise ValueError(EXPECTED)
    return name


def _inside(path: str) -> str:
    if leads_outside(path) or fault_of(path) or path.startswith("~"):
        raise ValueError("a path inside of the folder, without ..")
    return path


Name = Annotated[str, AfterValidator(_named)]
PathInside = Annotated[str, StringConstraints(max_length=1000), AfterValidator(_inside)]


def checked_name(name: object, where: str) -> str:
    """The name itself. Raises UserError for what is none."""
    if not isinstance(name, str) or not re.fullmatch(PATTERN, name):
        raise UserError(
            where,
            expected=EXPECTED,
            found=short(name),
            do="give it another name",
        )
    return name


def fault_of(text: str) -> str:
    """What makes a text one that no file can hold; "" if nothing does."""
    if "\0" in text:
        return "a zero byte"
    try:
        text.encode()
    except UnicodeEncodeError:  # the surrogates that JSON's escapes can give
        return "half a character"
    return ""


def check_text(text: str, where: str, do: str, longest: int = LONGEST_TEXT) -> None:
    """Raise UserError for a text that no file can hold, and for more than `longest`
    characters."""
    fault = fault_of(text)
    if fault:
        raise UserError(
            where,
            expected="text",
            found=f"{fault} in {text!r:.60}",
            do=do,
        )
    if len(text) > longest:
        raise UserError(
            where,
            expected=f"at most {longest} characters",
            found=f"{len(text)}, {text!r:.40}...",
            do=do,
        )


def leads_outside(file: str) -> bool:
    """Whether a path may leave the folder that it is relative to, or names none."""
    path = PurePosixPath(file)
    return path.is_absolute() or ".." in path.parts or not path.parts or "\\" in file


def inside(
    file: str,
    where: str,
    do: str,
    expected: str = "a path inside the folder",
) -> str:
    """A path in its shortest form, with forward slashes. Raises UserError for one that
    may leave its folder, and for one that no file can have."""
    path = PurePosixPath(file)
    if leads_outside(file) or fault_of(file):
        raise UserError(
            where,
            expected=expected,
            found=f"{file!r:.200}",
            do=do,
        )
    longest = max(len(part.encode()) for part in path.parts)
    if longest > LONGEST_FILE_NAME or len(file.encode()) > LONGEST_PATH:
        raise UserError(
            where,
            expected=f"{expected} of at most {LONGEST_PATH} bytes, {LONGEST_FILE_NAME} "
            "per name",
            found=f"{len(file.encode())} bytes, {file!r:.60}...",
            do=do,
        )
    return str(path)


# Names of folds -----------------------------------------------------------------------


@dataclass(frozen=True)
class Fold:
    """Images of a dataset that are test once, with the rest as training."""

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
    match = FOLD.fullmatch(name)
    return Fold(match["dataset"], int(match["number"])) if match else None


def whole_of(name: str) -> str:
    """The dataset that a fold is of; of another name, itself."""
    fold = fold_of(name)
    return fold.dataset if fold else name


def folder_of_folds(dataset: str) -> str:
    """The folder of what git keeps of all folds of a dataset."""
    return f"{dataset}{FOLDS}"


def folder_of(name: str) -> str:
    """The folder of what git keeps of a dataset, or of a fold."""
    fold = fold_of(name)
    return folder_of_folds(fold.dataset) if fold else name


def prefix_of(name: str) -> str:
    """What the names of a fold begin with in `folder_of(name)`, for example "3/"; "" for
    a whole dataset."""
    fold = fold_of(name)
    return f"{fold.number}/" if fold else ""


def preparing(name: str) -> str:
    """What makes the tables of a dataset, or of a fold, as an advice."""
    if fold := fold_of(name):
        return f"run: python -m benchmark.prepare.folds {fold.dataset}"
    return f"run: rematch fetch {name}, then rematch prepare {name}"


def is_reserved(name: str) -> bool:
    """Whether a dataset of this name would be taken for a fold, or for their
    folder."""
    return name.endswith(FOLDS) or fold_of(name) is not None
