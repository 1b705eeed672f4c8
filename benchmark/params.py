"""The active season, spelt out: what params.yaml holds and every stage reads."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from benchmark.errors import UserError, checked
from benchmark.files import read_yaml

PARAMS = Path("params.yaml")

Option = bool | int | float | str | None


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ImageEncoder(Strict):
    """How pictures become features; the slug names the folder they are kept in."""

    network: str = "mobilenet_v2"
    input_size: int = Field(224, ge=32)  # pixels, both sides
    grid: int = Field(6, ge=1)  # cells a side: grid * grid "regions"
    flip: bool = True  # average the features of a picture and its mirror image
    standardise: bool = False  # per channel, with the training split's mean and deviation

    @property
    def slug(self) -> str:
        marks = ["flip"] * self.flip + ["std"] * self.standardise
        return "_".join([self.network, str(self.input_size), f"g{self.grid}", *marks])


class SentenceEncoder(Strict):
    """How captions become vectors, for methods that take sentence vectors."""

    encoder: str = "word2vec"
    size: int = Field(300, ge=2)
    vectors: str | None = None  # a word2vec .bin; None trains on the training captions
    standardise: bool = False  # per dimension, with the training captions' mean and deviation

    @property
    def slug(self) -> str:
        origin = "loaded" if self.vectors else "trained"
        return f"{self.encoder}_{origin}{self.size}" + "_std" * self.standardise


class DatasetSettings(Strict):
    reader: str = Field("", pattern=r"^[a-z0-9_]*$")  # module of datasets/; default: the name
    source: str | None = None  # folder that holds the raw files; None: download or data/raw
    options: dict[str, Option] = {}
    image: ImageEncoder = ImageEncoder()
    sentence: SentenceEncoder = SentenceEncoder()


class Encoding(Strict):
    """One feature folder: a dataset seen by one encoder."""

    dataset: str
    reader: str  # module of datasets/
    kind: Literal["image", "sentence"]
    encoder: str  # module of benchmark/encoders/
    folder: str
    image: ImageEncoder | None = None
    sentence: SentenceEncoder | None = None


class Cell(Strict):
    """One training and its evaluation: (dataset, preset, seed)."""

    dataset: str
    preset: str
    seed: int
    method: str
    family: str
    options: dict[str, Option]  # the preset's, then the season's
    scaled: list[str]  # options the season set to fit its budget
    images: str  # feature folder
    texts: str  # feature folder, or the caption table for methods that read words
    folder: str


class Fusion(Strict):
    """A cell without a training of its own: the mean score of two trained cells."""

    dataset: str
    preset: str
    seed: int
    left: str  # folder of a trained cell
    right: str
    folder: str


class Params(Strict):
    """An active season, spelt out: the content of params.yaml."""

    season: str
    title: str
    device: str
    precision: Literal["float32", "bfloat16"]
    validation_images: int | None
    weights_dir: str | None
    datasets: dict[str, DatasetSettings]
    encodings: dict[str, Encoding]
    cells: dict[str, Cell]
    fusions: dict[str, Fusion]


def read_params() -> Params:
    """The active season."""
    if not PARAMS.is_file():
        raise UserError(f"{PARAMS}: not found; choose a season: python -m benchmark season demo")
    return checked(Params, read_yaml(PARAMS), str(PARAMS))


def entry(group: dict, key: str, what: str):
    """`group[key]`, or a `UserError` that lists what the active season has."""
    if key not in group:
        raise UserError(f"{PARAMS}: no {what} {key!r}; expected one of {', '.join(group)}")
    return group[key]
