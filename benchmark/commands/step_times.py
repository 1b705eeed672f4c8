"""How long one step of a training, one scoring and one encoding take here, on made-up
data of a season's sizes.

CPU times are process time divided by the number of threads, so other work on the
machine does not count; GPU times are wall-clock times. What would take too long is timed with
fewer rows and extrapolated: a step may grow with the rows of a batch or with their
square. Weights are random, which does not change how long a network takes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torchvision.models import get_model

from benchmark import features
from benchmark.contracts import datasets
from benchmark.contracts.methods import Captions, Inputs, Phase, Sizes
from benchmark.core.devices import begin, now
from benchmark.data.feature_folders import Words
from benchmark.encode.images import box_encoder, describer
from benchmark.features import faster_rcnn, hglmm
from benchmark.scoring import model_scores
from benchmark.scoring.inputs import PhraseInputs, SplitInputs
from benchmark.scoring.model_scores import CAPTION_TILE, ENCODE_CHUNK, IMAGE_TILE
from benchmark.season.parameters import (
    DETECTORS,
    DRAWN,
    TRANSFORMER,
    Cell,
    FeatureSet,
    ImageEncoder,
    ProposalEncoder,
    SentenceEncoder,
)
from benchmark.season.plugins import ConfiguredMethod
from benchmark.train.resumable_loop import Run, optimiser_of

LEAST, GROWTH = 2, 4  # rows that are timed first, and times as many next
PATIENCE = 4  # budgets; a first run that takes longer is not repeated
RUNS = 5  # of a whole batch, at most
SHARES = 0.6, 0.4  # of the time for a cell: steps, and scoring
DISTINCT = 64  # made-up images
FITTED, CLOSED = 512, 512  # rows and sizes of a closed form that is timed
PHOTOGRAPH = (500, 375)  # pixels, of Flickr's
IMAGES, TEXTS = 16, 64  # that are encoded: whole batches of texts
CAPTION = "a black dog runs over the green grass near two small children"
PROJECTED = 512  # dimensions of a projection that are timed


@dataclass(frozen=True, kw_only=True)
class InputSizes:
    """The sizes of what a method is fed."""

    image: tuple[int, ...]  # shape of an image: (F,), (R, F), (3, S, S); (P, F)
    pooled: int  # F, of pixels what the image network makes of them
    text: int  # numbers of a vector, or words of the vocabulary
    classes: int
    rows: int  # training captions, or phrases
    lengths: tuple[int, ...]  # words of some captions
    vector: int = 300  # numbers of a word's vector
    network: str = ""  # of pixels


@dataclass(frozen=True, kw_only=True)
class CellTimes:
    """Seconds that the parts of a cell take."""

    steps: tuple[float, ...] = ()  # a step of each phase
    fit: float = 0.0  # in closed form
    image: float = 0.0  # encoding one; of localisation scoring its phrases
    caption: float = 0.0
    pair: float = 0.0  # score of an image and a caption
    sentence_pair: float = 0.0  # of two captions


@dataclass(frozen=True, kw_only=True)
class EncodingTimes:
    """Seconds that the encoding of an image or of a text takes, and of each text that
    is fitted to; the shape of each array that is made of an item."""

    item: float
    fitted: float = 0.0
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)


# Clock --------------------------------------------------------------------------------


def clock(device: torch.device) -> float:
    """Seconds of `device` since some moment."""
    if device.type == "cuda":
        return now(device)
    return process_time() / torch.get_num_threads()


def seconds_at(
    work: Callable[[int], object], size: int, budget: float, device: torch.device
) -> float:
    """Seconds of `work(size)`, in about `budget` seconds."""
    until = clock(device) + budget

    def timed(rows: int) -> float:
        started = clock(device)
        work(rows)
        return clock(device) - started

    rows = min(size, LEAST)
    first = timed(rows)  # longer than the next: memory is taken, kernels are chosen
    if first > PATIENCE * budget:
        return extrapolated({rows: first}, size)
    seconds = {rows: timed(rows)}
    while rows < size:
        if len(seconds) == 1:  # two sizes tell what does not grow with the rows
            more = min(size, 2 * rows)
        else:
            more = min(size, GROWTH * rows)
            if clock(device) + extrapolated(seconds, more) > until:
                return extrapolated(seconds, size)
        rows = more
        seconds[rows] = timed(rows)
    runs = [seconds[size]]
    while len(runs) < RUNS and clock(device) + runs[0] < until:
        runs.append(timed(size))
    return median(runs)


def extrapolated(seconds: dict[int, float], size: int) -> float:
    """Seconds of `size` rows by those of fewer: as a line or a power through the last
    two of them says, whichever is more."""
    *before, rows = sorted(seconds)
    last = seconds[rows]
    if not before:
        return last * size / rows
    growth = max(last / max(seconds[before[-1]], 1e-9), 1.0)  # a coarse clock says 0
    slope = (last - last / growth) / (rows - before[-1])
    power = min(math.log(growth, rows / before[-1]), 2.0)
    return max(last + slope * (size - rows), last * (size / rows) ** power)


# Cells --------------------------------------------------------------------------------


def cell_times(cell: Cell, fed: InputSizes, device: str, budget: float) -> CellTimes:
    """The times of a cell, in about `budget` seconds."""
    picked = begin(device, cell.precision)
    torch.manual_seed(0)
    method = ConfiguredMethod.of(cell)
    takes, phases = method.takes, method.module.recipe(method.config)
    model = _model(method, cell, fed).to(picked)
    count = max([CAPTION_TILE, *(phase.batch_size for phase in phases)])
    captions_per_image = max([1, *(phase.captions_per_image for phase in phases)])
    if takes.task == "localisation":
        inputs = phrases(fed, count, captions_per_image, picked)
    else:
        inputs = images_and_captions(fed, takes, count, captions_per_image, picked)
    steps = []
    for phase in phases:
        part = SHARES[0] * budget / len(phases)
        steps.append(
            _step_seconds(model, inputs, phase, cell, captions_per_image, part)
        )
    fit = _fit_seconds(method, cell, fed) if takes.fit else 0.0
    autocast = torch.autocast(
        picked.type, torch.bfloat16, enabled=cell.precision == "bfloat16"
    )
    model.eval()
    with torch.inference_mode(), autocast:
        scoring = _scoring_seconds(model, inputs, takes, SHARES[1] * budget)
    return CellTimes(steps=tuple(steps), fit=fit, **scoring)


def _model(method: ConfiguredMethod, cell: Cell, fed: InputSizes) -> nn.Module:
    parts = {}
    if method.takes.word_vectors:
        parts["word_vectors"] = torch.randn(fed.text, fed.vector)
    if method.takes.image == "pixels":
        encoder = features.load(cell.backbone)
        parts["image_network"] = encoder.structure(fed.network, fed.pooled)
    sizes = Sizes(image=fed.pooled, text=fed.text, classes=fed.classes)
    return method.module.Model(method.config, sizes, **parts)


def _step_seconds(
    model: nn.Module,
    inputs: SplitInputs | PhraseInputs,
    phase: Phase,
    cell: Cell,
    captions_per_image: int,
    budget: float,
) -> float:
    """A step of the optimiser with a batch of the phase, and gathering it."""
    run = Run(
        model=model.train(),
        phases=[phase],
        train=inputs,
        validate=lambda model: {},
        seed=0,
        autocast=cell.precision == "bfloat16",
        scratch=Path(),
        name=cell.key,
        optimiser=optimiser_of(model, phase),
    )
    for group in run.optimiser.param_groups:
        group["lr"] = 1e-5 * group["factor"]  # so that made-up data does no harm
    rng = np.random.default_rng(0)

    def step(drawn: int) -> None:
        siblings = np.arange(phase.captions_per_image)
        rows = (captions_per_image * np.arange(drawn)[:, None] + siblings).ravel()
        pool = rng.integers(0, len(inputs.owners), phase.pool) if phase.pool else None
        for batch in inputs.batches([rows], [pool]):
            run.step(batch, phase)

    return seconds_at(step, phase.batch_size, budget, inputs.device)


def _fit_seconds(method: ConfiguredMethod, cell: Cell, fed: InputSizes) -> float:
    """A closed form: what grows with the rows does so with the square of the sizes,
    the rest with their cube."""
    device = torch.device("cpu")
    image, text = min(fed.image[-1], CLOSED), min(fed.text, CLOSED)
    small = replace(fed, image=(image,), pooled=image, text=text)
    larger = max(fed.image[-1], fed.text) / max(image, text)
    taken = []
    for rows in (LEAST, FITTED):
        images = torch.randn(rows, image)
        vectors = torch.randn(rows, text)
        lengths = torch.ones(rows, dtype=torch.int64)
        model = _model(method, cell, small)
        started = clock(device)
        model.fit([(images, Captions(values=vectors, lengths=lengths))])
        taken.append(clock(device) - started)
    row = max(taken[1] - taken[0], 0.0) / FITTED
    return taken[0] * larger**3 + row * fed.rows * larger**2


def _scoring_seconds(
    model: nn.Module, inputs: SplitInputs | PhraseInputs, takes: Inputs, budget: float
) -> dict[str, float]:
    """The fields of `CellTimes` that are of scoring."""
    device = inputs.device
    if isinstance(inputs, PhraseInputs):

        def score(count: int) -> None:
            model_scores.score_proposals(model, inputs.first_images(count))

        count = min(ENCODE_CHUNK, len(inputs.proposals))
        return {"image": seconds_at(score, count, budget, device) / count}
    part = budget / 4
    images = min(ENCODE_CHUNK, len(inputs.images))
    captions = min(ENCODE_CHUNK, len(inputs.owners))

    def encode_images(count: int) -> tuple[Tensor, ...]:
        return model.encode_images(inputs.images_at(slice(0, count)))

    def encode_captions(count: int) -> tuple[Tensor, ...]:
        return model.encode_captions(inputs.captions_at(slice(0, count)))

    seconds = {
        "image": seconds_at(encode_images, images, part, device) / images,
        "caption": seconds_at(encode_captions, captions, part, device) / captions,
    }
    rows, columns = encode_images(IMAGE_TILE), encode_captions(CAPTION_TILE)

    def score_tile(count: int) -> None:
        model.similarity(rows, tuple(x[:count] for x in columns))

    tile = seconds_at(score_tile, CAPTION_TILE, part, device)
    seconds["pair"] = tile / (IMAGE_TILE * CAPTION_TILE)
    if takes.caption_similarity:

        def score_sentences(count: int) -> None:
            model.caption_similarity(columns, tuple(x[:count] for x in columns))

        tile = seconds_at(score_sentences, CAPTION_TILE, part, device)
        seconds["sentence_pair"] = tile / CAPTION_TILE**2
    return seconds


def images_and_captions(
    fed: InputSizes,
    takes: Inputs,
    count: int,
    captions_per_image: int,
    device: torch.device,
) -> SplitInputs:
    """Made-up images, `count` of them, with `captions_per_image` captions."""
    is_pixels = takes.image == "pixels"
    drawn = (min(count, DISTINCT), *fed.image)
    if is_pixels:
        few = torch.randint(256, drawn, dtype=torch.uint8)
    else:
        few = torch.randn(drawn).half()
    images = few[torch.arange(count) % len(few)]
    owners = torch.arange(count).repeat_interleave(captions_per_image)
    chosen = torch.randint(len(fed.lengths), (len(owners),))
    lengths = torch.tensor(fed.lengths)[chosen]
    contexts = None
    if takes.text == "sentence":
        values = torch.randn(len(owners), fed.text).half()
        lengths = torch.ones_like(lengths)
    elif takes.text == "contextual":
        values = torch.arange(len(owners) * max(fed.lengths)).view(len(owners), -1)
        contexts = torch.randn(values.numel(), fed.text).half().to(device)
    else:
        shape = (len(owners), max(fed.lengths))
        is_word = torch.arange(shape[1]) < lengths[:, None]
        values = torch.randint(1, fed.text, shape) * is_word
    captions = Captions(
        values=values.to(device), lengths=lengths.to(device), lengths_on_host=lengths
    )
    groups = torch.arange(count).to(device)
    return SplitInputs(
        images=images if is_pixels else images.to(device),
        captions=captions,
        image_of_caption=owners.to(device),
        group_of_image=groups,
        class_of_image=groups % max(fed.classes, 1),
        contexts=contexts,
        device=device,
    )


def phrases(
    fed: InputSizes, count: int, each: int, device: torch.device
) -> PhraseInputs:
    """Made-up images with proposals, `count` of them, each with one thing that `each`
    phrases name; two proposals of an image fit."""
    proposals, size = fed.image
    few = torch.randn(min(count, DISTINCT), proposals, size).half()
    chains = torch.arange(count).repeat_interleave(each)
    ious = torch.full((len(chains), proposals), 0.1)
    ious[:, :2] = 0.8
    return PhraseInputs(
        proposals=few[torch.arange(count) % len(few)],
        truths=torch.randn(len(chains), size).half(),
        boxes=torch.tensor([0.0, 0.0, 1.0, 1.0]).repeat(count, proposals, 1),
        ious=ious,
        image_of_phrase=chains,
        chain_of_phrase=chains,
        vectors=torch.randn(len(chains), fed.text).half(),
        vector_of_phrase=torch.arange(len(chains)),
        device=device,
    )


# Encodings ----------------------------------------------------------------------------


def encoding_times(
    feature_set: FeatureSet, vector: int, device: str, budget: float
) -> EncodingTimes | None:
    """The times of a feature set, in about `budget` seconds, with word vectors of a
    size; None of word vectors, of what takes as long as they, and of files of
    features."""
    picked = begin(device)
    torch.manual_seed(0)
    if feature_set.image and not feature_set.image.features:
        return _picture_times(feature_set.encoder, feature_set.image, picked, budget)
    if feature_set.proposals:
        encoder, settings = feature_set.encoder, feature_set.proposals
        return _proposal_times(encoder, settings, picked, budget)
    if feature_set.encoder in (TRANSFORMER, "bilstm_max"):
        return _text_times(feature_set, vector)
    if feature_set.encoder == "hglmm":
        return _fisher_times(feature_set.sentence, vector, budget)
    return None


def scenes(count: int) -> list[Image.Image]:
    """Drawn scenes of a photograph's size."""
    shapes = datasets.load("shapes")
    options = shapes.Options(train=count, val=1, test=1)
    draw = shapes.pictures(Path(), options)
    files = shapes.read(Path(), options).images["file"]
    return [draw(file).resize(PHOTOGRAPH) for file in files[:count]]


def _picture_times(
    encoder: str, settings: ImageEncoder, device: torch.device, budget: float
) -> EncodingTimes:
    describe = describer(_network(encoder, settings.network), settings, device)
    images = scenes(IMAGES)
    shapes: dict[str, tuple[int, ...]] = {}

    def encode(count: int) -> None:
        for name, array in describe(images[:count]).items():
            shapes[name] = array.shape[1:]

    item = seconds_at(encode, IMAGES, budget, device) / IMAGES
    return EncodingTimes(item=item, shapes=shapes)


def _proposal_times(
    encoder: str, settings: ProposalEncoder, device: torch.device, budget: float
) -> EncodingTimes:
    network = _network(encoder, settings.network)
    detector = network if encoder == DETECTORS else None
    if settings.how == "rpn" and detector is None:
        detector = _network(DETECTORS, faster_rcnn.NETWORKS[0])
    boxes = box_encoder(settings, network, detector, device)
    images = scenes(IMAGES)
    shapes: dict[str, tuple[int, ...]] = {}

    def encode(count: int) -> None:
        boxes.take(images[:count])
        proposed = [np.tile(np.float32([9, 9, 99, 99]), (settings.count, 1))] * count
        if settings.how != "file":
            proposed = boxes.proposed([], Path())
        described = boxes.described(proposed)
        shapes["proposals"] = (settings.count, described[0].shape[1])

    item = seconds_at(encode, IMAGES, budget, device) / IMAGES
    return EncodingTimes(item=item, shapes=shapes)


def _text_times(feature_set: FeatureSet, vector: int) -> EncodingTimes:
    """Times of TEXTS further captions of one length: encoding 2 * TEXTS less encoding
    TEXTS, so that loading the weights does not count."""
    encoder = features.load(feature_set.encoder)
    words = tuple(dict.fromkeys(CAPTION.split()))
    rng = np.random.default_rng(0)
    table = Words(words, rng.random((len(words), vector), dtype=np.float32))
    settings = feature_set.sentence
    if feature_set.encoder != TRANSFORMER:
        settings = settings.model_copy(update={"weights": None})  # drawn
    taken = []
    for count in (TEXTS, TEXTS, 2 * TEXTS):  # each loads weights, the first a library
        started = process_time()
        texts, is_train = [CAPTION] * count, np.ones(count, bool)
        vectors, _ = encoder.encode(texts, is_train, table, settings)
        taken.append(process_time() - started)
    item = max(taken[2] - taken[1], 0.0) / TEXTS
    return EncodingTimes(item=item, shapes={"texts": vectors.shape[1:]})


def _fisher_times(
    settings: SentenceEncoder, vector: int, budget: float
) -> EncodingTimes:
    """Fisher vectors as the products that project them: one for each text, and some
    more for each that the projection is fitted to."""
    dimensions = 2 * settings.centres * vector
    size = min(settings.size or hglmm.SIZE, dimensions)
    columns = min(size, PROJECTED)
    rng = np.random.default_rng(0)
    fisher = rng.random((TEXTS, dimensions), dtype=np.float32)
    components = rng.random((dimensions, columns), dtype=np.float32)

    def project(count: int) -> None:
        fisher[:count] @ components

    seconds = seconds_at(project, TEXTS, budget, torch.device("cpu"))
    item = seconds / TEXTS * size / columns
    passes = 2 * hglmm.POWER_ITERATIONS + 2
    shapes = {"texts": (size,)}
    return EncodingTimes(item=item, fitted=passes * item, shapes=shapes)


def _network(encoder: str, network: str) -> nn.Module:
    """A network with drawn weights, in evaluation mode."""
    if encoder == DETECTORS:
        return get_model(network, weights=None, weights_backbone=None).eval()
    size = 384 if network == DRAWN else 1
    return features.load(encoder).structure(network, size).eval()
