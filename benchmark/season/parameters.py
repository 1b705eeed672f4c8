"""The models of a season: its file as people write it, and what it resolves to in
memory."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from benchmark.core.errors import Strict
from benchmark.core.names import (
    Name,
    PathInside,
    fold_of,
    folder_of,
    folder_of_folds,
    folds_of,
    prefix_of,
)

Option = bool | int | float | str | None
Precision = Literal["float32", "tf32", "bfloat16"]
Mode = Literal["portable", "intel", "native"]  # core/numerics.py tells what they mean
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**31)]
CORRECTIONS = {  # scoring/corrections.py
    "nnn": "nearest-neighbour normalisation",
    "inverted_softmax": "inverted softmax",
    "qb_norm": "QB-Norm",
    "dual_softmax": "dual softmax",
}
Correction = Literal[*CORRECTIONS]
BROUGHT = "brought"  # family of rows that `score` added
# networks that are not torchvision's classifiers
DRAWN, DETECTORS = "drawn_cnn", "faster_rcnn"
TRANSFORMER = "transformer"  # the text encoder that needs no word vectors
SAMPLES, RETRIEVED = "samples.npz", "retrieved.npz"  # files of a cell's results
CELLS = "data/cells"  # root of what evaluations leave
AS_IN_PAPER = "as in paper"  # for a network: the one that the preset's paper feeds it
Network = Literal["as in paper"] | Name


def module_of(network: str) -> str:
    """The module of benchmark/features/ that provides an image network."""
    if network == DRAWN:
        return DRAWN
    if network.startswith("timm_"):
        return "timm_cnn"
    return DETECTORS if network.startswith("fasterrcnn") else "torchvision_cnn"


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower())


class ImageEncoder(Strict):
    """How images become features; the slug names the folder they are kept in."""

    network: Network = "mobilenet_v2"
    # path in the raw folder: taken instead of encoding
    features: PathInside | None = None
    input_size: int = Field(224, ge=32, le=4096)  # pixels, both sides
    grid: int = Field(6, ge=1, le=128)  # cells a side: grid * grid "regions"
    flip: bool = True  # average the features of an image and its mirror image
    # per channel, with the training split's mean and deviation
    standardise: bool = False
    # side of images kept to train from pixels; 0: none
    pixels: int = Field(0, ge=0, le=4096)

    @property
    def slug(self) -> str:
        marks = [self.network, str(self.input_size), f"g{self.grid}"]
        if self.flip:
            marks.append("flip")
        if self.standardise:
            marks.append("std")
        if self.pixels:
            marks.append(f"p{self.pixels}")
        if self.features:
            marks.append("imported")
        return "_".join(marks)


class ProposalEncoder(Strict):
    """Where things may be in an image, and the features of these boxes."""

    how: Literal["selective_search", "rpn", "file"] = "selective_search"
    # how: file: folder in the raw folder, one file an image
    boxes: PathInside | None = None
    count: int = Field(200, ge=1, le=100_000)  # of boxes kept of an image, P
    network: Name = "mobilenet_v2"
    input_size: int = Field(448, ge=32, le=4096)  # pixels, both sides
    # per channel, with the mean and deviation of training proposals
    standardise: bool = False

    @model_validator(mode="after")
    def _names_its_files(self) -> "ProposalEncoder":
        if self.how == "file" and self.boxes is None:
            raise ValueError("`boxes`, a folder of the raw folder, beside `how: file`")
        return self

    @property
    def slug(self) -> str:
        marks = [self.how, str(self.count), self.network, str(self.input_size)]
        if self.standardise:
            marks.append("std")
        return "_".join(marks)


class WordVectors(Strict):
    """Where the vectors of words come from."""

    # word2vec .bin or GloVe .txt; None trains on training captions
    vectors: str | None = None
    size: int = Field(300, ge=2, le=100_000)

    @property
    def slug(self) -> str:
        origin = _plain(Path(self.vectors).stem) if self.vectors else ""
        return f"words_{origin or 'trained'}{self.size}"


class SentenceEncoder(Strict):
    """How captions become vectors, for methods that take sentence vectors."""

    # of the vectors; None: the encoder's own
    size: int | None = Field(None, ge=2, le=1_000_000)
    centres: int = Field(30, ge=1, le=10_000)  # hglmm: mixture components
    hidden: int = Field(2048, ge=1, le=100_000)  # bilstm_max: units a direction
    # bilstm_max: published weights, None: random; transformer: folder
    weights: str | None = None
    words: WordVectors | None = None  # its own; None: those of the dataset
    masked: bool = True  # bilstm_max: padding is left out of the maximum
    # per dimension, with the training captions' mean and deviation
    standardise: bool = False

    @property
    def slug(self) -> str:
        marks = []
        if self.size:
            marks.append(str(self.size))
        if self.centres != 30:
            marks.append(f"c{self.centres}")
        if self.hidden != 2048:
            marks.append(f"h{self.hidden}")
        if self.weights:
            marks.append(_plain(Path(self.weights).name))
        if not self.masked:
            marks.append("unmasked")
        if self.standardise:
            marks.append("std")
        return "_".join(marks)


def _distinct(seeds: list[int]) -> list[int]:
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError("at least one seed, each of them once")
    return seeds


Seeds = Annotated[list[Seed], AfterValidator(_distinct)]


class DatasetSettings(Strict):
    # of datasets/; "": the name
    reader: str = Field("", pattern=r"^([a-z0-9][a-z0-9_]*)?$")
    # folder that holds the raw files; None: download or data/raw
    source: str | None = None
    options: dict[str, Option] = {}  # of the reader
    # which of the season's are run on it: names, patterns, "!" not
    presets: list[str] = ["*"]
    # what papers set otherwise on it; as `options`
    changes: dict[str, dict[str, Option]] = {}
    # network -> path in the raw folder, as image.features
    features: dict[Name, PathInside] = {}
    image: ImageEncoder = ImageEncoder()
    words: WordVectors = WordVectors()
    # encoder -> settings; presets name the encoder
    sentence: dict[Name, SentenceEncoder] = {}
    phrases: dict[Name, SentenceEncoder] = {}  # the same, for phrases
    proposals: ProposalEncoder = ProposalEncoder()
    # parts that are test once each, the official test split among them; None: that alone
    folds: int | None = Field(None, ge=2, le=1000)
    # which of its presets are run on the further folds, as `presets`
    fold_presets: list[str] = ["*"]
    fold_seeds: Seeds = [0]  # on the further folds

    @model_validator(mode="after")
    def _has_folds(self) -> "DatasetSettings":
        is_changed = self.fold_presets != ["*"] or self.fold_seeds != [0]
        if is_changed and self.folds is None:
            raise ValueError("`folds` beside `fold_presets` and `fold_seeds`")
        return self


class FeatureSet(Strict):
    """One feature folder: a dataset seen by one encoder."""

    dataset: Name
    reader: Name  # module of datasets/
    kind: Literal["pictures", "words", "sentences", "contexts", "phrases", "proposals"]
    encoder: Name  # module of benchmark/features/
    folder: str
    # what is encoded: the prepared dataset, or the word vectors that sentences use
    source: str
    image: ImageEncoder | None = None
    words: WordVectors | None = None
    sentence: SentenceEncoder | None = None  # of phrases, too
    proposals: ProposalEncoder | None = None

    @property
    def is_taken(self) -> bool:
        """Whether it is of a fold, and `source` is that of the whole dataset, which was
        computed once."""
        fold = fold_of(self.dataset)
        return bool(fold) and self.source.startswith(f"data/features/{fold.dataset}/")


def key_of(dataset: str, preset: str, seed: int) -> str:
    """What commands call a cell."""
    return f"{dataset}-{preset}-{seed}"


class Brought(Strict):
    """A row of the leaderboard whose embeddings, scores or ranks were made
    elsewhere."""

    dataset: Name
    preset: Name  # or what the row is called
    seed: Seed

    @property
    def key(self) -> str:
        """What commands call the cell."""
        return key_of(self.dataset, self.preset, self.seed)

    @property
    def name(self) -> str:
        """What the results of the dataset call it."""
        return f"{self.preset}/{self.seed}"

    @property
    def kept_as(self) -> str:
        """What the folder that git keeps its result in calls it: of a fold, with the
        number of that."""
        return f"{prefix_of(self.dataset)}{self.name}"


class Declared(Brought):
    """A cell by name: what its results are found by."""


class Fused(Declared):
    """A fusion by name."""

    members: list[str]  # folders of trained cells, in the order of its parts


class Evaluated(Declared):
    """What cells and fusions have in common."""

    # of what the evaluation leaves, data/cells/<season>/<dataset>/<preset>/<seed>
    folder: str
    precision: Precision = "float32"
    numerics: Mode = "portable"
    threads: int = Field(1, ge=1, le=1024)
    keeps: tuple[str, ...] = ()  # which of SAMPLES and RETRIEVED git keeps

    @property
    def inside(self) -> str:
        """The path of the cell in each folder that has files of cells."""
        return self.folder.removeprefix(f"{CELLS}/")

    @property
    def costs(self) -> str:
        """The folder of what its trainings and evaluations cost."""
        return f"data/costs/{self.inside}"

    def place(self, name: str) -> str:
        """The file of SAMPLES, which figures draw, or of RETRIEVED, the first answers
        to each query. What git keeps is collected from the cell's folder, so the rest
        lies elsewhere."""
        if name in self.keeps:
            return f"{self.folder}/scores/{name}"
        return f"data/samples/{self.inside}/{name}"


class Cell(Evaluated):
    """One training and its evaluation: (dataset, preset, seed)."""

    method: str
    family: str
    options: dict[str, Option]  # the preset's, then the season's
    scaled: list[str]  # options the season set to fit its budget
    # checkpoint selection sees the first n; None: all
    validation_images: int | None = None
    network: str | None = None  # image network that the paper feeds the preset
    images: str  # feature folder
    # module of benchmark/features/ with the image network, for pixels
    backbone: Name | None = None
    # feature folder, for methods that take vectors of texts or tokens
    texts: str | None = None
    # feature folder of word vectors, for methods that take words
    words: str | None = None
    start: str | None = None  # checkpoint that training goes on from

    @property
    def checkpoint(self) -> str:
        """The file of the trained weights."""
        return f"data/checkpoints/{self.inside}.pt"

    @property
    def history(self) -> str:
        """The file of the epochs of the training, beside the weights."""
        return f"{self.checkpoint.removesuffix('.pt')}.json"

    @property
    def features(self) -> list[str]:
        """The feature folders that the cell reads."""
        return [folder for folder in (self.images, self.texts, self.words) if folder]


class Fusion(Evaluated, Fused):
    """A cell without a training of its own: scores of trained cells as one score, their
    mean where it is corrected."""

    how: Literal["average", "adaptive", "weighted"] | Correction
    parts: list[str]  # the named score of each member; "": its similarity


def _method_file(path: str) -> str:
    is_outside = path.startswith("~") or ".." in Path(path).parts
    if not path.endswith(".py") or (is_outside and not Path(path).is_absolute()):
        expected = "the path of a .py file, absolute or inside of the working folder"
        raise ValueError(expected)
    return path


MethodFile = Annotated[str, AfterValidator(_method_file)]


class OwnClaim(Strict):
    """A statement on presets of the season, judged as those of the papers are."""

    better: Name
    than: Name
    metric: str = "rsum"
    statement: str = ""  # "" says it in the words of the other fields


class Season(Strict):
    """seasons/<name>/season.yaml, written by hand: datasets, presets, seeds and a
    budget.

    Keys that name presets are methods or patterns of presets, as in `dual_path_*_2`.
    """

    title: str  # of the report
    datasets: dict[Name, DatasetSettings]  # by name
    # own ones: name -> file, its presets beside it
    methods: dict[Name, MethodFile] = {}
    presets: list[Name] | Literal["all"]  # what they are made of is added
    # of scores: rows PRESET_CORRECTION of presets
    corrections: dict[Correction, list[Name]] = {}
    claims: list[OwnClaim] = []  # own ones, beside those of the papers
    # weights of a text encoder, or an external row -> corpora and datasets that have
    # the captions that it was trained on
    trained_on: dict[str, list[str]] = {}
    seeds: Seeds  # three for verdicts
    seeds_of: dict[str, Seeds] = {}  # seeds instead of these
    sentence_of: dict[str, Name] = {}  # sentence encoder instead of the presets' own
    device: str = "auto"  # the first CUDA device, else the CPU; or cpu, cuda:1
    precision: Precision = "float32"  # docs/gpus.md tells what they mean
    numerics: Mode = "portable"  # of cells; features are portable always
    # of a cell: their number changes the last bits
    threads: int = Field(1, ge=1, le=1024)
    # checkpoint selection sees the first n
    validation_images: int | None = Field(None, ge=1)
    options: dict[str, dict[str, Option]] = {}  # the budget's changes
    # presets whose samples of the first seed git keeps, for figures
    pages: list[str] = ["*"]
    answers: list[str] = ["*"]  # presets whose first answers to each query git keeps


class Declaration(Strict):
    """What a season declares, its cells by name: enough to read its results. `Params`
    has what the cells take, for which method files, and torch, are imported."""

    season: str
    title: str
    datasets: dict[str, DatasetSettings]  # without folds
    folds: dict[str, int] = {}  # dataset -> their number, with the official test split
    cells: dict[str, Declared] = {}
    fusions: dict[str, Fused] = {}
    methods: dict[Name, MethodFile] = {}  # own ones
    corrections: dict[Correction, list[Name]] = {}
    claims: list[OwnClaim] = []
    trained_on: dict[str, list[str]] = {}
    brought: dict[str, Brought] = {}  # `score` wrote their records

    @property
    def everything(self) -> dict[str, Declared]:
        """Cells and fusions by key."""
        return {**self.cells, **self.fusions}

    @property
    def fold_names(self) -> dict[str, list[str]]:
        """Dataset -> its folds, without the official test split."""
        names = {}
        for dataset, count in self.folds.items():
            names[dataset] = [fold.name for fold in folds_of(dataset, count)]
        return names


class Params(Declaration):
    """A season spelt out, with the folders of this machine."""

    device: str
    weights_dir: str | None = None
    feature_sets: dict[str, FeatureSet]
    cells: dict[str, Cell] = {}
    fusions: dict[str, Fusion] = {}

    @property
    def everything(self) -> dict[str, Cell | Fusion]:
        """Cells and fusions by key."""
        return {**self.cells, **self.fusions}

    @property
    def folders(self) -> list[str]:
        """Of results/<season>/: one of each dataset, and one of all its folds."""
        return [*self.datasets, *map(folder_of_folds, self.folds)]

    def kept_in(self, folder: str) -> list[Cell | Fusion]:
        """The cells and fusions on a dataset, or on all its folds, by their folder."""
        cells = self.everything.values()
        return [cell for cell in cells if folder_of(cell.dataset) == folder]
