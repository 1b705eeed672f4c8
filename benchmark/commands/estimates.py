"""What a season costs on this machine, from a minute or two of timing: hours by preset,
and of the encodings.

Each kind of cell is timed once: its method, with the options that change what a step
computes, on data of the season's sizes. Where the minute is too short for all of them,
others of the same method stand in. Steps, epochs, validations and items are those of
the resolved cells. Not in it: downloads, preparation, vectors that are fitted to texts,
k-means, and reports.
"""

import io
import multiprocessing
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, zip_longest
from math import ceil
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from benchmark.commands import step_times
from benchmark.commands.step_times import CellTimes, EncodingTimes, InputSizes
from benchmark.contracts.methods import Inputs, Phase
from benchmark.core import numerics
from benchmark.core.devices import pick
from benchmark.core.errors import UserError
from benchmark.core.names import preparing, whole_of
from benchmark.core.numerics import Numerics
from benchmark.data import prepared_tables, raw_files
from benchmark.data.vocabularies import tokenise
from benchmark.features import hglmm, tfidf
from benchmark.scoring import score_checks
from benchmark.season.parameters import Cell, FeatureSet, Params
from benchmark.season.plugins import ConfiguredMethod

MINUTE = 60.0  # seconds of work that timing may take
ENCODING_SHARE = 0.25  # of the minute
LEAST_SHARE, MOST_SHARE = 1.5, 3.0  # seconds for one kind
# options that change no size and no term: a step takes as long with any value
FREE = (
    *("learning_rate", "image_rate", "layer_rates", "momentum", "weight_decay"),
    *("nesterov", "clip_norm", "epochs", "constraint_epochs", "warm_up_epochs"),
    *("decay_after", "decay_every", "margin", "alpha", "leak", "temperature", "bias"),
    *("dropout", "input_dropout", "region_dropout", "initial_deviation"),
    *("regulariser", "power", "positive_iou", "negative_iou", "min_count", "trains"),
)
# assumed of data that is not here: Flickr30K's vocabulary, and words of its captions
VOCABULARY, LENGTHS = 8481, tuple(range(10, 20))
EACH, PHRASES = 5, 3  # captions of an image, and phrases of a caption
POOLED, REGIONS = 2048, 36  # features that the field shares
READ = 50_000  # captions that tell the vocabulary
DAYS = 48  # hours from which days are named


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many of each a dataset has, by split."""

    images: dict[str, int]
    captions: dict[str, int]
    phrases: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """What is repeated in a cell."""

    steps: tuple[int, ...]  # of an epoch of each phase
    epochs: tuple[int, ...]
    validated: tuple[int, int]  # images and captions, or phrases
    tested: tuple[int, int]
    is_of_phrases: bool
    has_sentences: bool  # whether captions are scored with captions


@dataclass(frozen=True)
class Kind:
    """What decides how long a step takes."""

    method: str
    options: tuple[tuple[str, object], ...]  # but for FREE
    image: tuple[int, ...]
    text: int
    network: str
    batches: tuple[int, ...]  # rows that each phase draws
    numerics: Numerics
    precision: str

    @property
    def form(self) -> tuple[str, int]:
        """The method, and whether it takes vectors, regions or pixels."""
        return self.method, len(self.image)

    def likeness(self, other: "Kind") -> int:
        """How many options two kinds of the same form share; -1 if their forms differ,
        or if only one of them is trained."""
        if self.form != other.form or bool(self.batches) != bool(other.batches):
            return -1
        return len(set(self.options) & set(other.options))


@dataclass
class Row:
    """The cost of the cells of a preset, in seconds."""

    preset: str
    cells: int = 0
    steps: int = 0
    stepping: float = 0.0
    training: float = 0.0
    evaluation: float = 0.0
    is_like: bool = False  # another kind of the same method was timed
    untold: str = ""  # why some of its cells are not in it

    @property
    def seconds(self) -> float:
        return self.training + self.evaluation


@dataclass(frozen=True)
class Encoding:
    """The cost of a feature set."""

    name: str
    items: int
    fitted: int  # of them
    times: EncodingTimes

    @property
    def seconds(self) -> float:
        return self.items * self.times.item + self.fitted * self.times.fitted


@dataclass
class Estimate:
    """The cost of a season."""

    rows: list[Row]
    encodings: list[Encoding]
    untimed: list[str] = field(default_factory=list)  # feature sets
    timed: int = 0  # kinds
    kinds: int = 0
    took: float = 0.0  # seconds

    @property
    def seconds(self) -> float:
        return sum(part.seconds for part in (*self.rows, *self.encodings))


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What is known of a cell before anything of it is timed."""

    fed: InputSizes
    kind: Kind
    schedule: Schedule


def estimate(params: Params, seconds: float = MINUTE) -> Estimate:
    """Time the parts of a season in about `seconds`, and add them up."""
    started = perf_counter()
    encoded, spent = _encoding_times(params, ENCODING_SHARE * seconds)
    planned: dict[str, Planned] = {}
    untold: dict[str, str] = {}  # key of a cell -> why it has no estimate
    for key, cell in params.cells.items():
        try:
            planned[key] = plan_of(params, cell, encoded)
        except UserError as error:
            untold[key] = str(error)
    times, reasons = _cell_times(params, planned, seconds - spent)
    encodings, untimed = _encodings(params, encoded)
    return Estimate(
        rows=_rows(params, planned, times, untold, reasons),
        encodings=encodings,
        untimed=untimed,
        timed=len(times),
        kinds=len({plan.kind for plan in planned.values()}),
        took=perf_counter() - started,
    )


def plan_of(params: Params, cell: Cell, encoded: dict[str, EncodingTimes]) -> Planned:
    """Raises UserError for a dataset of unknown size, and for a method that cannot be
    imported."""
    counts = counts_of(params, cell.dataset)
    if counts is None:
        expected, dataset = "a known number of images", whole_of(cell.dataset)
        raise UserError(dataset, expected, "none", preparing(dataset))
    method = ConfiguredMethod.of(cell)
    phases = method.module.recipe(method.config)
    fed = fed_of(params, cell, method.takes, counts, encoded)
    return Planned(
        fed=fed,
        kind=kind_of(cell, fed, phases),
        schedule=schedule_of(cell, method.takes, phases, counts),
    )


def _rows(
    params: Params,
    planned: dict[str, Planned],
    times: dict[Kind, CellTimes],
    untold: dict[str, str],
    reasons: dict[Kind, str],
) -> list[Row]:
    """A row for each preset."""
    rows: dict[str, Row] = {}
    evaluations: dict[str, float] = {}  # folder of a cell -> seconds
    for key, cell in params.cells.items():
        row = rows.setdefault(cell.preset, Row(cell.preset))
        row.cells += 1
        if key in untold:
            row.untold = untold[key]
            continue
        plan = planned[key]
        near = nearest(plan.kind, list(times))
        if near is None or plan.kind in reasons:
            row.untold = reasons.get(plan.kind, "nothing like it was timed")
            continue
        row.is_like |= near != plan.kind
        scale = scale_of(plan.kind, near)
        steps, stepping, training = trained(times[near], plan.schedule, scale)
        evaluation = evaluated(times[near], plan.schedule)
        row.steps += steps
        row.stepping += stepping
        row.training += training
        row.evaluation += evaluation
        evaluations[cell.folder] = evaluation
    for fusion in params.fusions.values():
        row = rows.setdefault(fusion.preset, Row(fusion.preset))
        row.cells += 1
        members = [evaluations.get(member, 0.0) for member in fusion.members]
        row.evaluation += sum(members)
        if not evaluations.keys() >= set(fusion.members):
            row.untold = "a cell that it is made of has no estimate"
    return list(rows.values())


# Sizes --------------------------------------------------------------------------------


def counts_of(params: Params, dataset: str) -> Counts | None:
    """What preparation counted, else what the dataset's card expects; None where
    neither says."""
    counted: dict[str, dict[str, int]] = {"images": {}, "captions": {}, "phrases": {}}
    try:
        card = prepared_tables.read_card(dataset)
    except UserError:
        known = raw_files.raw_dataset(params, whole_of(dataset)).card
        images = dict(known.expected_images)
        if not images:
            return None
        captions = dict(known.expected_captions)
        captions = captions or {split: EACH * count for split, count in images.items()}
        phrases = {split: PHRASES * count for split, count in captions.items()}
        return Counts(images=images, captions=captions, phrases=phrases)
    for split, numbers in card["counts"].items():
        for what, of_split in counted.items():
            of_split[split] = numbers[what]
    return Counts(**counted)


@cache
def _texts_of(dataset: str) -> tuple[int, tuple[int, ...]]:
    """Words of the vocabulary, and of some captions between <start> and <end>."""
    if not prepared_tables.is_here(dataset):
        return VOCABULARY, LENGTHS
    captions = prepared_tables.read(dataset).captions
    texts = captions["text"][captions["split"] == "train"].iloc[:READ]
    tokens = list(map(tokenise, texts))
    lengths = [len(words) + 2 for words in tokens[:: 1 + len(tokens) // 1000]]
    return len(set(chain.from_iterable(tokens))), tuple(lengths)


def fed_of(
    params: Params,
    cell: Cell,
    takes: Inputs,
    counts: Counts,
    encoded: dict[str, EncodingTimes],
) -> InputSizes:
    """The sizes of what a cell is fed: of its features where they are here, else of
    what their encoder makes of an image."""
    sets = {each.folder: each for each in params.feature_sets.values()}
    pictures, made = sets[cell.images], {}
    if cell.images in encoded:
        made = encoded[cell.images].shapes
    settings = pictures.image
    assumed = {"pooled": (POOLED,), "regions": (REGIONS, POOLED)}
    if settings:
        assumed["pixels"] = (3, settings.pixels, settings.pixels)
    if pictures.proposals:
        assumed["proposals"] = (pictures.proposals.count, POOLED)

    def shape(name: str) -> tuple[int, ...]:
        path = Path(cell.images, f"{name}.npy")
        if path.is_file():
            return np.load(path, mmap_mode="r").shape[1:]
        return made.get(name) or assumed[name]

    image = shape(takes.image)
    pooled = shape("pooled")[0] if takes.image == "pixels" else image[-1]
    vocabulary, lengths = _texts_of(cell.dataset)
    text, vector = vocabulary, 300
    if cell.words:
        vector = sets[cell.words].words.size
    if cell.texts:
        text = _text_size(sets[cell.texts], params, encoded)
    rows = counts.captions
    if takes.task == "localisation":
        rows = counts.phrases
    classes = counts.images.get("train", 0)
    return InputSizes(
        image=image,
        pooled=pooled,
        text=text,
        classes=round(classes * (takes.clusters or 1)),
        rows=rows.get("train", 0),
        lengths=lengths,
        vector=vector,
        network=settings.network if settings else "",
    )


def _text_size(
    texts: FeatureSet, params: Params, encoded: dict[str, EncodingTimes]
) -> int:
    """Numbers of a vector of a text."""
    for name in ("sentence", "phrase", "contextual"):
        path = Path(texts.folder, f"{name}.npy")
        if path.is_file():
            return np.load(path, mmap_mode="r").shape[1]
    if texts.folder in encoded:
        return encoded[texts.folder].shapes["texts"][0]
    if texts.sentence.size:
        return texts.sentence.size
    return tfidf.SIZE if texts.encoder == "tfidf" else _vector_size(params, texts)


def _vector_size(params: Params, feature_set: FeatureSet) -> int:
    """Numbers of a word's vector."""
    settings = feature_set.sentence
    if settings and settings.words:
        return settings.words.size
    return params.datasets[whole_of(feature_set.dataset)].words.size


def schedule_of(
    cell: Cell, takes: Inputs, phases: Sequence[Phase], counts: Counts
) -> Schedule:
    """How many steps, epochs and scores a cell has."""
    is_of_phrases = takes.task == "localisation"
    texts = counts.phrases if is_of_phrases else counts.captions
    steps = []
    for phase in phases:
        drawn = counts.images if phase.draws == "images" else texts
        steps.append(ceil(drawn.get("train", 0) / phase.batch_size))
    images = counts.images.get("val", 0)
    validated = min(cell.validation_images or images, images)
    share = validated / images if images else 0
    return Schedule(
        steps=tuple(steps),
        epochs=tuple(phase.epochs for phase in phases),
        validated=(validated, round(share * texts.get("val", 0))),
        tested=(counts.images.get("test", 0), texts.get("test", 0)),
        is_of_phrases=is_of_phrases,
        has_sentences=takes.caption_similarity,
    )


def kind_of(cell: Cell, fed: InputSizes, phases: Sequence[Phase]) -> Kind:
    options = [(key, value) for key, value in cell.options.items() if key not in FREE]
    return Kind(
        method=cell.method,
        options=tuple(sorted(options, key=str)),
        image=fed.image,
        text=fed.text,
        network=fed.network if len(fed.image) == 3 else "",
        batches=tuple(phase.batch_size for phase in phases),
        numerics=Numerics(cell.numerics, cell.threads),
        precision=cell.precision,
    )


# Sums ---------------------------------------------------------------------------------


def trained(
    times: CellTimes, schedule: Schedule, scale: float = 1.0
) -> tuple[int, float, float]:
    """Steps of a training, their seconds, and those of all of it; `scale` is of a step.
    The weights that are kept are validated once more."""
    steps, stepping = 0, 0.0
    for number, epochs in enumerate(schedule.epochs):
        steps += epochs * schedule.steps[number]
        of_phase = times.steps[min(number, len(times.steps) - 1)]
        stepping += epochs * schedule.steps[number] * scale * of_phase
    validations = sum(schedule.epochs) + 1
    validation = _scored(times, schedule, *schedule.validated)
    return steps, stepping, times.fit + stepping + validations * validation


def evaluated(times: CellTimes, schedule: Schedule) -> float:
    """Seconds of an evaluation: items are encoded and scored, and in part again."""
    seconds = _scored(times, schedule, *schedule.tested)
    if schedule.is_of_phrases:
        return seconds
    images, captions = schedule.tested
    again = images * times.image + captions * times.caption
    again += min(score_checks.PAIRS, images * captions) * times.pair
    sentences = captions**2 * times.sentence_pair if schedule.has_sentences else 0.0
    return seconds + again + sentences


def _scored(times: CellTimes, schedule: Schedule, images: int, captions: int) -> float:
    if schedule.is_of_phrases:
        return images * times.image
    one_by_one = images * times.image + captions * times.caption
    return one_by_one + images * captions * times.pair


def _encodings(
    params: Params, encoded: dict[str, EncodingTimes]
) -> tuple[list[Encoding], list[str]]:
    """What was timed, and the names of the others. Features of a fold are those of its
    dataset."""
    encodings, untimed = [], []
    for name, feature_set in params.feature_sets.items():
        counts = counts_of(params, feature_set.dataset)
        if feature_set.is_taken:
            continue
        if feature_set.folder not in encoded or counts is None:
            untimed.append(name)
            continue
        counted = counts.images
        if feature_set.sentence:
            is_of_phrases = feature_set.kind == "phrases"
            counted = counts.phrases if is_of_phrases else counts.captions
        items = sum(count for split, count in counted.items() if split != "unused")
        fitted = min(counted.get("train", 0), hglmm.FIT_AT_MOST)
        encodings.append(Encoding(name, items, fitted, encoded[feature_set.folder]))
    return encodings, untimed


# Timing -------------------------------------------------------------------------------


def _encoding_times(
    params: Params, seconds: float
) -> tuple[dict[str, EncodingTimes], float]:
    """Folder of each feature set that could be timed -> its times, and the seconds that
    were spent; those with equal settings are timed once."""
    alike: dict[str, list[FeatureSet]] = defaultdict(list)
    for feature_set in params.feature_sets.values():
        settings = feature_set.image or feature_set.proposals or feature_set.sentence
        vector = _vector_size(params, feature_set)
        alike[f"{feature_set.encoder} {settings!r} {vector}"].append(feature_set)
    share = min(seconds / max(len(alike), 1), MOST_SHARE)
    times = {}
    with _Timer(Numerics(numerics.PORTABLE, threads=1), params.device) as timer:
        for sets in alike.values():
            given = sets[0], _vector_size(params, sets[0]), params.device, share
            found = timer.result(step_times.encoding_times, *given)
            if isinstance(found, EncodingTimes):
                times |= {each.folder: found for each in sets}
    return times, timer.spent


def _cell_times(
    params: Params, planned: dict[str, Planned], seconds: float
) -> tuple[dict[Kind, CellTimes], dict[Kind, str]]:
    """Times of as many kinds as the seconds suffice for, the most frequent of each
    form first; and why others have none."""
    first: dict[Kind, str] = {}  # the key of a cell
    alike: dict[tuple[str, int], dict[Kind, int]] = defaultdict(dict)
    for key, plan in planned.items():
        kind = plan.kind
        first.setdefault(kind, key)
        cells = alike[kind.form]
        cells[kind] = cells.get(kind, 0) + 1
    queues = [sorted(each, key=each.get, reverse=True) for each in alike.values()]
    ordered = [kind for kind in chain(*zip_longest(*queues)) if kind]
    share = seconds / max(len(ordered), 1)
    share = min(max(share, LEAST_SHARE), MOST_SHARE)
    times, reasons = {}, {}
    timers: dict[Numerics, _Timer] = {}
    try:
        for number, kind in enumerate(ordered):
            spent = sum(timer.spent for timer in timers.values())
            if spent + share > seconds and number >= len(queues):
                break
            if kind.numerics not in timers:
                timers[kind.numerics] = _Timer(kind.numerics, params.device)
            key = first[kind]
            given = params.cells[key], planned[key].fed, params.device, share
            found = timers[kind.numerics].result(step_times.cell_times, *given)
            if isinstance(found, CellTimes):
                times[kind] = found
            else:
                reasons[kind] = found
    finally:
        for timer in timers.values():
            timer.__exit__()
    return times, reasons


class _Timer:
    """A process that computes in a certain way, and the seconds that it worked: on a
    CPU by its own clock, which stands still while other programs run."""

    def __init__(self, how: Numerics, device: str) -> None:
        self.how = how
        self.on_gpu = pick(device).type == "cuda"
        self.pool: ProcessPoolExecutor | None = None
        self.spent = 0.0

    def __enter__(self) -> "_Timer":
        return self

    def __exit__(self, *_error: object) -> None:
        if self.pool:
            self.pool.shutdown()

    def result(self, function: Callable, *arguments: object) -> object:
        """What the function returns, or the reason why it did not."""
        started = perf_counter()
        with numerics.of_children(self.how):
            if self.pool is None:
                spawn = multiprocessing.get_context("spawn")
                self.pool = ProcessPoolExecutor(1, spawn)
            future = self.pool.submit(attempt, function, arguments)
        try:
            found, worked = future.result()
        except BrokenProcessPool:
            self.pool = None  # the next one begins anew
            found, worked = "its process died: killed, or out of memory", 0.0
        self.spent += perf_counter() - started if self.on_gpu else worked
        return found


def attempt(function: Callable, arguments: tuple) -> tuple[object, float]:
    """What the function returns, or the reason why it did not, and its seconds by the
    clock of this process. Not all errors can be sent to another one."""
    started = process_time()
    try:
        with redirect_stderr(io.StringIO()):  # bars of progress
            found = function(*arguments)
    except (Exception, SystemExit) as error:
        found = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return found, process_time() - started


def nearest(kind: Kind, timed: Sequence[Kind]) -> Kind | None:
    """The kind that was timed, or the one that is most like it; None where none is."""
    if kind in timed:
        return kind
    alike = [other for other in timed if kind.likeness(other) >= 0]
    return max(alike, key=kind.likeness, default=None)


def scale_of(kind: Kind, near: Kind) -> float:
    """How much longer a step of a kind takes than one of another, by its rows."""
    return sum(kind.batches) / sum(near.batches) if near.batches else 1.0


# Words --------------------------------------------------------------------------------


def lines(found: Estimate, device: str) -> list[str]:
    """The estimate as a table."""
    timing = f"{found.timed} of {found.kinds} kinds of cells in {found.took:.0f} s"
    told = [
        f"estimate       {device}, one stage after the other; timed here: {timing}",
        "",
        f"{'preset':42}{'cells':>6}{'steps':>12}{'ms a step':>11}{'hours':>10}",
    ]
    for row in found.rows:
        step = 1000 * row.stepping / row.steps if row.steps else 0.0
        numbers = f"{row.cells:6}{row.steps:12,}{step:11.1f}{row.seconds / 3600:10.3f}"
        mark = " ~" if row.is_like else ""
        reason = f"  lacks cells: {row.untold}" if row.untold else ""
        told.append(f"{row.preset:42}{numbers}{mark}{reason}")
    if any(row.is_like for row in found.rows):
        told.append("~ told from other rows of its method: the minute was over")
    told += ["", f"{'encoding':48}{'items':>12}{'ms each':>11}{'hours':>10}"]
    for part in found.encodings:
        item = 1000 * part.seconds / max(part.items, 1)
        numbers = f"{part.items:12,}{item:11.1f}{part.seconds / 3600:10.3f}"
        told.append(f"{part.name:48}{numbers}")
    if found.untimed:
        told.append(f"not timed: {', '.join(found.untimed)}")
    least = "at least " if any(row.untold for row in found.rows) else ""
    told += ["", f"in all         {least}{hours(found.seconds)}"]
    return told


def hours(seconds: float) -> str:
    """Seconds as hours, as days where they are, and as minutes where they are fewer."""
    spent = seconds / 3600
    if spent < 1:
        return f"{seconds / 60:.1f} minutes"
    told = f"{spent:,.1f} hours"
    return f"{told} ({spent / 24:.1f} days)" if spent >= DAYS else told
