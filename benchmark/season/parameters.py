"""A season spelt out: its datasets, feature sets, cells and fusions, as every stage reads them."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from benchmark.core.names import Name, PathInside
from benchmark.protocol import METRICS

Option = bool | int | float | str | None
Precision = Literal["float32", "tf32", "bfloat16"]
Mode = Literal["portable", "intel", "native"]  # core/numerics.py tells what they mean
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**31)]
BROUGHT = "brought"  # family of rows that `score` added, and the folder of their files
AS_IN_PAPER = "as in paper"  # for a network: the one that the preset's paper feeds it
Network = Literal["as in paper"] | Name


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ImageEncoder(Strict):
    """How pictures become features; the slug names the folder they are kept in."""

    network: Network = "mobilenet_v2"
    features: PathInside | None = (
        None  # file or folder in the raw folder: taken instead of encoding
    )
    input_size: int = Field(224, ge=32, le=4096)  # pixels, both sides
    grid: int = Field(6, ge=1, le=128)  # cells a side: grid * grid "regions"
    flip: bool = True  # average the features of a picture and its mirror image
    standardise: bool = False  # per channel, with the training split's mean and deviation
    pixels: int = Field(
        0, ge=0, le=4096
    )  # side of the pictures kept for training from pixels; 0: none

    @property
    def slug(self) -> str:
        marks = ["flip"] * self.flip + ["std"] * self.standardise
        marks += [f"p{self.pixels}"] if self.pixels else []
        marks += ["imported"] if self.features else []
        return "_".join([self.network, str(self.input_size), f"g{self.grid}", *marks])


class ProposalEncoder(Strict):
    """Where things may be in a picture, and the features of these boxes."""

    how: Literal["selective_search", "rpn", "file"] = "selective_search"
    boxes: PathInside | None = None  # how: file: folder in the raw folder, one file an image
    count: int = Field(200, ge=1, le=100_000)  # of boxes kept of a picture, P
    network: Name = "mobilenet_v2"
    input_size: int = Field(448, ge=32, le=4096)  # pixels, both sides
    standardise: bool = False  # per channel, with the mean and deviation of training proposals

    @model_validator(mode="after")
    def _names_its_files(self) -> "ProposalEncoder":
        if self.how == "file" and self.boxes is None:
            raise ValueError("`boxes`, a folder of the raw folder, beside `how: file`")
        return self

    @property
    def slug(self) -> str:
        marks = ["std"] * self.standardise
        return "_".join([self.how, str(self.count), self.network, str(self.input_size), *marks])


class WordVectors(Strict):
    """Where the vectors of words come from."""

    vectors: str | None = None  # word2vec .bin or GloVe .txt; None trains on training captions
    size: int = Field(300, ge=2, le=100_000)

    @property
    def slug(self) -> str:
        origin = re.sub(r"[^a-z0-9]+", "-", Path(self.vectors).stem.lower()) if self.vectors else ""
        return f"words_{origin or 'trained'}{self.size}"


class SentenceEncoder(Strict):
    """How captions become vectors, for methods that take sentence vectors."""

    size: int | None = Field(
        None, ge=2, le=1_000_000
    )  # of the vectors kept; None: as the encoder makes them
    centres: int = Field(30, ge=1, le=10_000)  # hglmm: mixture components
    hidden: int = Field(2048, ge=1, le=100_000)  # bilstm_max: units a direction
    weights: str | None = None  # bilstm_max: published weights; None: random ones
    words: WordVectors | None = None  # its own; None: those of the dataset
    masked: bool = True  # bilstm_max: padding is left out of the maximum
    standardise: bool = False  # per dimension, with the training captions' mean and deviation

    @property
    def slug(self) -> str:
        marks = {
            "": self.size,
            "c": self.centres if self.centres != 30 else None,
            "h": self.hidden if self.hidden != 2048 else None,
        }
        words = [f"{letter}{value}" for letter, value in marks.items() if value]
        words += ["loaded"] * bool(self.weights) + ["unmasked"] * (not self.masked)
        return "_".join(words + ["std"] * self.standardise)


class DatasetSettings(Strict):
    reader: str = Field(
        "", pattern=r"^([a-z0-9][a-z0-9_]*)?$"
    )  # module of datasets/; default: the name
    source: str | None = None  # folder that holds the raw files; None: download or data/raw
    options: dict[str, Option] = {}  # of the reader
    presets: list[str] = ["*"]  # which of the season's are played on it: names, patterns, "!" not
    changes: dict[
        str, dict[str, Option]
    ] = {}  # what the papers set otherwise on it; by method or pattern
    features: dict[
        Name, PathInside
    ] = {}  # network -> path in the raw folder: features taken as they are
    image: ImageEncoder = ImageEncoder()
    words: WordVectors = WordVectors()
    sentence: dict[Name, SentenceEncoder] = {}  # encoder -> settings; presets name the encoder
    phrases: dict[Name, SentenceEncoder] = {}  # the same, for phrases
    proposals: ProposalEncoder = ProposalEncoder()


class FeatureSet(Strict):
    """One feature folder: a dataset seen by one encoder."""

    dataset: Name
    reader: Name  # module of datasets/
    kind: Literal["pictures", "words", "sentences", "phrases", "proposals"]
    encoder: Name  # module of benchmark/encoders/
    folder: str
    source: str  # what is encoded: the prepared dataset, or the word vectors that sentences use
    image: ImageEncoder | None = None
    words: WordVectors | None = None
    sentence: SentenceEncoder | None = None  # of phrases, too
    proposals: ProposalEncoder | None = None


class Cell(Strict):
    """One training and its evaluation: (dataset, preset, seed)."""

    dataset: Name
    preset: Name
    seed: Seed
    method: str
    family: str
    options: dict[str, Option]  # the preset's, then the season's
    scaled: list[str]  # options the season set to fit its budget
    precision: Precision = "float32"
    numerics: Mode = "portable"
    threads: int = Field(1, ge=1, le=1024)
    validation_images: int | None = None  # checkpoint selection sees the first n; None: all
    network: str | None = None  # image network that the paper feeds the preset
    images: str  # feature folder
    backbone: Name | None = None  # module of benchmark/encoders/ with the image network, for pixels
    texts: str | None = None  # feature folder, for methods that take vectors of captions or phrases
    words: str | None = None  # feature folder of word vectors, for methods that take words
    start: str | None = None  # checkpoint that training goes on from
    folder: str

    @property
    def key(self) -> str:
        """What commands call the cell."""
        return f"{self.dataset}-{self.preset}-{self.seed}"

    @property
    def checkpoint(self) -> str:
        """The file of the trained weights. DVC keeps it and git does not, so it lies apart from the
        results."""
        return f"data/checkpoints/{self.folder.removeprefix('results/')}.pt"


class Fusion(Strict):
    """A cell without a training of its own: scores of trained cells as one score."""

    dataset: Name
    preset: Name
    seed: Seed
    how: Literal["average", "adaptive", "weighted"]
    members: list[str]  # folders of trained cells
    parts: list[str]  # the named score of each member; "": its similarity
    precision: Precision = "float32"
    numerics: Mode = "portable"
    threads: int = Field(1, ge=1, le=1024)
    folder: str


def _method_file(path: str) -> str:
    if not path.endswith(".py") or not (Path(path).is_absolute() or _stays(path)):
        raise ValueError("the path of a .py file, absolute or inside of the working folder")
    return path


def _stays(path: str) -> bool:
    return ".." not in Path(path).parts and not path.startswith("~")


MethodFile = Annotated[str, AfterValidator(_method_file)]


class OwnClaim(Strict):
    """A statement on presets of the season, judged as those of the papers are."""

    better: Name
    than: Name
    metric: str = "rsum"
    statement: str = ""  # "" says it in the words of the other fields

    @field_validator("metric")
    @classmethod
    def _is_metric(cls, name: str) -> str:
        if name not in METRICS:
            raise ValueError(f"one of {', '.join(METRICS)}")
        return name


class Brought(Strict):
    """A row of the leaderboard whose embeddings, scores or ranks were made elsewhere."""

    dataset: Name
    preset: Name  # what the row is called
    seed: Seed
    folder: str

    @property
    def key(self) -> str:
        return f"{self.dataset}-{self.preset}-{self.seed}"


class Params(Strict):
    """A season spelt out, with the folders of this machine."""

    season: str
    title: str
    device: str
    weights_dir: str | None
    datasets: dict[str, DatasetSettings]
    feature_sets: dict[str, FeatureSet]
    cells: dict[str, Cell]
    fusions: dict[str, Fusion]
    methods: dict[Name, MethodFile] = {}  # own ones
    claims: list[OwnClaim] = []
    brought: dict[str, Brought] = {}  # nothing plays these: `score` wrote their records
