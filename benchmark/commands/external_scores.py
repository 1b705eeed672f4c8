"""What was made elsewhere and is judged as every row: embeddings, scores or ranks of
the test split."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.core.errors import short
from benchmark.data.prepared_tables import Prepared
from benchmark.features import embedding_files
from benchmark.features.embedding_files import ORDER, Rows
from benchmark.scoring.evaluation import Evaluation

SPLIT = "test"
QUERIES = {"i2t": "images", "t2i": "captions"}  # of a direction
FAR_APART = 0.1  # of the spread of numbers: more than rounding makes of equal captions


class Given(StrEnum):
    """What the files hold."""

    EMBEDDINGS = "embeddings"
    SCORES = "scores"
    RANKS = "ranks"


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """What the options say of how files are read; what they leave open, a file must
    show by itself."""

    numbers: str | None = None  # what whole numbers stand for
    first_rank: int | None = None  # 0 or 1, of the best item
    not_found: str | None = None  # the rank of what was not found
    depth: int = 0  # items in the list of each query; 0: not known
    order: str = ORDER  # the command that writes the items in their order

    @property
    def facts(self) -> dict[str, object]:
        """The options that differ from their defaults, for a record."""
        options = {
            "numbers": self.numbers,
            "first_rank": self.first_rank or None,
            "not_found": self.not_found,
            "depth": self.depth or None,
        }
        return {name: value for name, value in options.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class External:
    """What was made elsewhere, and what follows from it."""

    given: Given
    files: list[Path]
    result: Evaluation
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # what was taken for granted
    # of lists, by direction: which best items were not found, (Q,) bool
    lost: Mapping[str, np.ndarray] = field(default_factory=dict)
    # how many items the lists of a direction have, where that is known
    depths: Mapping[str, int] = field(default_factory=dict)


def names_of(data: Prepared) -> dict[str, list[list[str]]]:
    """What files may call the test images and captions: lists in the split's order."""
    split = data.split(SPLIT)
    images = data.images.iloc[split.image_rows]
    image_names = embedding_files.forms_of(images)
    # what the annotations call them beside that, as COCO's numbers
    if "imgid" in images:
        image_names.insert(3, images["imgid"].tolist())
    captions = data.captions.iloc[split.caption_rows]
    caption_names = [captions["caption_id"].tolist()]
    if "sentid" in captions:  # Karpathy's, of COCO its annotation ids
        caption_names += [captions["sentid"].astype(str).tolist()] * 3
    return {"images": image_names, "captions": caption_names}


def note_on_whole_numbers(rows: Rows, numbers: str | None) -> str:
    """How whole numbers were read."""
    return f"{rows.path}: {rows.whole}, read as {numbers or 'coordinates'}"


def notes_on_equal_captions(
    data: Prepared, rows_CF: np.ndarray, path: Path
) -> list[str]:
    """Notes on captions of several images that are equal word for word and whose rows
    of numbers are not."""
    split = data.split(SPLIT)
    texts = data.captions["text"].iloc[split.caption_rows]
    code_C = pd.factorize(texts)[0]
    first_C = np.unique(code_C, return_index=True)[1][code_C]
    is_elsewhere_C = split.group_of_caption != split.group_of_caption[first_C]
    repeats = np.flatnonzero(is_elsewhere_C)
    if not np.isfinite(rows_CF[repeats]).all():  # lists of what was retrieved
        return []
    apart = np.abs(rows_CF[repeats] - rows_CF[first_C[repeats]])
    differences = apart.max(1, initial=0)
    if not (differences > 0).any():
        return []
    example = short(texts.iloc[repeats[differences.argmax()]])
    count = int((differences > 0).sum())
    repeat = f"{path}: {count} captions repeat those of other images word for word"
    if differences.max() > FAR_APART * float(rows_CF.std()):
        doubt = "but with other numbers: is the order right?"
    else:
        doubt = "with numbers that differ by rounding, which decides their ties"
    return [f"{repeat}, such as {example}, {doubt}"]
