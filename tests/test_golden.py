"""Golden bytes: what decides a number makes the same bytes of small made-up data as
before.

A digest that differs is a changed number. If the change is meant, raise the version of
the stage in `benchmark/versions.yaml` that the message names, and write the digests
anew:

    GOLDEN=write python -m pytest tests/test_golden.py

All is made in portable numerics (conftest.py asserts it), so that Intel's and AMD's
processors agree. Each of the functions below belongs to one room: where the room gets
other entry points, the calls change, and the digests stay.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import feature_files
import layouts
import numpy as np
import pandas as pd
import pytest
import raw_formats
import tiny_cells
import torch
from PIL import Image
from torch import nn
from torchvision import models

from benchmark.contracts import datasets, methods

GOLDEN = Path(__file__).with_name("golden.json")
IS_WRITING = os.environ.get("GOLDEN") == "write"
WORDS = (
    "red",
    "green",
    "blue",
    "dog",
    "cat",
    "boat",
    "runs",
    "sleeps",
    "a",
    "the",
    "two",
    "near",
)
Values = Iterator[tuple[str, object]]  # what each digest is of, by its name


# Digests ------------------------------------------------------------------------------


def digest(value: object) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of arrays, tables, pictures, and
    JSON."""
    made = hashlib.sha256()
    _feed(made, value)
    return made.hexdigest()[:16]


def _feed(made: "hashlib._Hash", value: object) -> None:
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    if isinstance(value, np.ndarray):
        made.update(f"{value.dtype.str}{value.shape}".encode())
        made.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Image.Image):
        _feed(made, np.asarray(value))
    elif isinstance(value, pd.DataFrame):
        made.update(value.to_csv(index=False).encode())
    elif isinstance(value, dict):
        for name in sorted(value):
            made.update(f"{name}:".encode())
            _feed(made, value[name])
    elif isinstance(value, list | tuple) and not all(
        isinstance(v, str | float) for v in value
    ):
        made.update(f"{len(value)} of".encode())
        for item in value:
            _feed(made, item)
    else:
        plain = value.item() if isinstance(value, np.generic) else value
        made.update(json.dumps(plain).encode())


def rounded(value: object) -> object:
    # nine digits: statistics may be computed by another library
    if isinstance(value, dict):
        return {str(name): rounded(inner) for name, inner in value.items()}
    if isinstance(value, np.ndarray):
        return rounded(value.tolist())
    if isinstance(value, list | tuple):
        return [rounded(inner) for inner in value]
    if isinstance(value, bool) or value is None or isinstance(value, str | int):
        return value
    return f"{float(value):.9g}"


def numbers(seed: int, *shape: int) -> np.ndarray:
    """Uniform numbers in [-1, 1), float32: exact on every processor."""
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def captions(count: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    # the third holds no known word
    texts = [
        " ".join(rng.choice(WORDS, int(rng.integers(3, 7)))) + "." for _ in range(count)
    ]
    texts[2] = "zebra!"
    return texts


# Readers and prepare ------------------------------------------------------------------


def golden_of_readers(folder: Path) -> Values:
    for name, form in raw_formats.FORMATS.items():
        raw = folder / name.replace(", ", "_")
        raw.mkdir()
        form.write(raw)
        yield from _read(name, datasets.load(form.reader), raw, form.options)
    flickr8k = datasets.load("flickr8k")
    raw = folder / "flickr8k"
    write_flickr8k(raw)
    yield from _read("flickr8k, official", flickr8k, raw, {})
    raw = folder / "own"
    write_own_folder(raw)
    own = datasets.load("folder")
    yield from _read("folder, jsonl", own, raw, {"captions": "all.jsonl"})
    yield from _read(
        "folder, csv", own, raw, {"captions": "all.csv", "val": 2, "test": 2}
    )


def _read(name: str, module: object, raw: Path, options: dict) -> Values:
    options = module.Options(**options)
    tables = module.read(raw, options)
    yield f"{name}: images", tables.images
    yield f"{name}: captions", tables.captions
    yield f"{name}: regions", tables.regions
    files = [file for file in tables.images["file"] if file]
    if files:
        yield f"{name}: first picture", module.pictures(raw, options)(files[0])


def write_flickr8k(raw: Path) -> None:
    splits = {
        "train": ("30_a", "10_b", "20_a"),
        "dev": ("41_a", "40_b"),
        "test": ("52_a", "51_b"),
    }
    names = [f"{stem}.jpg" for stems in splits.values() for stem in stems]
    for name in [*names, "99_a.jpg"]:
        layouts.draw(raw / "Flicker8k_Dataset" / name, int(name[:2]))
    lines = [
        f"{n}#{k}\tPicture {n} , said {k} times ."
        for n in sorted(names)
        for k in range(5)
    ]
    layouts.write_lines(raw / "Flickr8k.token.txt", lines)
    for split, stems in splits.items():
        of_split = [f"{stem}.jpg" for stem in stems]
        layouts.write_lines(raw / f"Flickr_8k.{split}Images.txt", of_split)


def write_own_folder(raw: Path) -> None:
    texts = captions(24)
    for number in range(12):
        layouts.draw(raw / f"{number}.png", number)
    rows = [
        {
            "image": f"{n}.png",
            "captions": texts[2 * n : 2 * n + 2],
            "group": f"g{n // 2}",
        }
        for n in range(12)
    ]
    layouts.write_lines(raw / "all.jsonl", map(json.dumps, rows))
    lines = [f'{n // 2}.png,"{texts[n]}"' for n in range(24)]
    layouts.write_lines(raw / "all.csv", ["image,caption", *lines])


def golden_of_drawings(folder: Path) -> Values:
    """The drawn datasets: tables and pictures."""
    for name, counts in (("shapes", (8, 3, 5)), ("people", (4, 2, 3))):
        module = datasets.load(name)
        options = module.Options(
            **dict(zip(("train", "val", "test"), counts, strict=True))
        )
        tables = module.read(folder, options)
        open_picture = module.pictures(folder, options)
        yield f"{name}: images", tables.images
        yield f"{name}: captions", tables.captions
        yield f"{name}: regions", tables.regions
        yield (
            f"{name}: pictures",
            [open_picture(file) for file in tables.images["file"][::2]],
        )
    shown = list(datasets.load("shapes").labelled(8, 0))
    yield "shapes: close-ups", [[picture, labels] for picture, labels in shown]


# Encoders -----------------------------------------------------------------------------


def golden_of_text_encoders(folder: Path) -> Values:
    from benchmark.data.feature_folders import Words
    from benchmark.data.vocabularies import Dictionary, Vocabulary, tokenise
    from benchmark.features import bilstm_max, hglmm, mean_words, tfidf, word2vec
    from benchmark.season.parameters import SentenceEncoder, WordVectors

    texts, is_train = captions(60), np.arange(60) % 3 > 0
    corpus = [
        tokenise(text) for text, kept in zip(texts, is_train, strict=True) if kept
    ]
    yield (
        "tokens",
        [tokenise("A dog's red-white ball; 2nd try, isn't it? Über 3.5"), *corpus],
    )
    vocabulary = Vocabulary.of(texts[::2], 8)
    yield "vocabulary", [list(vocabulary.words), *vocabulary.encode(texts)]
    dictionary = Dictionary.of(texts[::2], {"red", "dog", "the", "zebra"})
    yield "dictionary", [list(dictionary.words), *dictionary.encode(texts)]
    trained, _ = word2vec.words(corpus[:8], WordVectors(size=8), set(WORDS))
    yield "word2vec", [list(trained.words), trained.vectors]
    lines = [" ".join([word, *map(str, numbers(n, 4))]) for n, word in enumerate(WORDS)]
    layouts.write_lines(folder / "glove.txt", lines)
    settings = WordVectors(vectors=str(folder / "glove.txt"), size=4)
    loaded, _ = word2vec.words(corpus, settings, {"red", "dog", "zebra"})
    yield "word2vec: a file of vectors", [list(loaded.words), loaded.vectors]
    words = Words(tuple(sorted(WORDS)), numbers(1, len(WORDS), 6))
    encoders = {
        "mean_words": (mean_words, SentenceEncoder()),
        "tfidf": (tfidf, SentenceEncoder(size=5)),
        "hglmm": (hglmm, SentenceEncoder(centres=3, size=10)),
        "bilstm_max": (bilstm_max, SentenceEncoder(hidden=5)),
        "bilstm_max: not masked": (bilstm_max, SentenceEncoder(hidden=5, masked=False)),
    }
    for name, (module, settings) in encoders.items():
        yield name, module.encode(texts, is_train, words, settings)[0]


def golden_of_transformer(folder: Path) -> Values:
    """Of a tiny BERT, with weights that every version of its library has alike."""
    bert = feature_files.bert(folder)
    from safetensors.torch import load_file, save_file

    from benchmark.features import transformer
    from benchmark.season.parameters import SentenceEncoder

    state = sorted(load_file(bert / "model.safetensors").items())
    drawn = {name: numbers(n, *value.shape) for n, (name, value) in enumerate(state)}
    tensors = {name: torch.from_numpy(value) for name, value in drawn.items()}
    save_file(tensors, bert / "model.safetensors", {"format": "pt"})
    texts, settings = captions(60), SentenceEncoder(weights=str(bert))
    yield "sentences", transformer.encode(texts, np.ones(60, bool), None, settings)[0]
    yield "ends of tokens", transformer.contexts(texts, settings)[0]


def golden_of_image_encoders(folder: Path) -> Values:
    from benchmark.encode.images import describer, features_of_boxes, stacked
    from benchmark.features import drawn_cnn, faster_rcnn, torchvision_cnn
    from benchmark.features.proposals import selective_search
    from benchmark.features.standardisation import Standardiser
    from benchmark.season.parameters import ImageEncoder

    images = [drawn(number) for number in range(4)]
    yield "pixels", stacked(images, 32)
    networks = {"drawn_cnn": (drawn_cnn.Network(width=16), 64)}
    for name in ("mobilenet_v2", "resnet50"):
        networks[f"torchvision_cnn: {name}"] = (torchvision_cnn.structure(name, 1), 64)
    for name, (network, side) in networks.items():
        fill(network)
        for flip in (False, True):
            settings = ImageEncoder(input_size=side, grid=2, flip=flip)
            describe = describer(network.eval(), settings, torch.device("cpu"))
            yield f"{name}{', mirrored too' * flip}", describe(images)
    fitted = torch.from_numpy(numbers(3, 2, 4, 9, 10))
    yield "torchvision_cnn: map averaged", torchvision_cnn.averaged(fitted, 7)
    detector = models.get_model(
        faster_rcnn.NETWORKS[0], weights=None, weights_backbone=None
    ).eval()
    fill(detector)
    detector.transform.min_size = (64,)
    boxes = [np.array([[2, 3, 30, 38], [0, 0, 60, 40]], np.float32)] * 4
    view, other = faster_rcnn.views(detector, images[:2])
    proposals = view.proposed(8)
    described = view.described(np.concatenate([proposals, boxes[0]]))
    yield "faster_rcnn: proposals and features", ([proposals], [described])
    yield "faster_rcnn: regions", tuple(each[None] for each in other.regions(5))
    yield (
        "boxes in a feature map",
        features_of_boxes(networks["drawn_cnn"][0], 64, images, boxes),
    )
    yield "selective search", [selective_search(image, 20) for image in images]
    features = numbers(2, 9, 4, 3)
    standardiser = Standardiser.of(features, np.arange(9) < 6)
    yield "standardised", standardiser(features)


def drawn(number: int) -> Image.Image:
    """Random colours, 60 x 40 pixels."""
    rng = np.random.default_rng(number)
    blocks = rng.integers(0, 256, (4, 6, 3), dtype=np.uint8).repeat(10, 0).repeat(10, 1)
    blocks[12:30, 17:41] = rng.integers(0, 256, 3, dtype=np.uint8)
    return Image.fromarray(blocks)


def fill(network: nn.Module) -> None:
    # every processor draws these alike; layers keep their scale
    with torch.no_grad():
        for number, (name, value) in enumerate(sorted(network.state_dict().items())):
            if not value.is_floating_point() or name in ("mean", "std"):
                continue
            if name.endswith(("pooled_mean", "running_mean", "bias")):
                value.zero_()
            elif value.dim() < 2:
                value.fill_(1.0)
            else:
                fan = value[0].numel()
                value.copy_(
                    torch.from_numpy(numbers(number, *value.shape)) * (3 / fan) ** 0.5
                )


# Methods ------------------------------------------------------------------------------

TINY = {
    "dropout": 0.0,
    "regions": 3,
    "blocks": "1,1,1,1",
    "text_width": 1 / 16,
    "text_length": 12,
}
SIZE, SIZES = 16, methods.Sizes(image=12, text=20, classes=8)
OF_A_PHASE = (
    *("epochs", "learning_rates", "batch_size", "draws", "captions_per_image", "pool"),
    *(
        "optimiser",
        "weight_decay",
        "momentum",
        "nesterov",
        "rates",
        "clip_norm",
        "terms",
        "keeps",
    ),
)


def golden_of_presets(folder: Path) -> Values:
    """Recipes; losses of three small steps, and scores after them."""
    from benchmark.season.plugins import presets
    from benchmark.train.resumable_loop import optimiser_of

    seen = {}
    for name, (method, row) in sorted(presets().items()):
        if row.fuse:
            yield f"{name}: fusion", json.dumps([row.fuse.how, list(row.fuse.of)])
            continue
        module = methods.load(method)
        recipe = module.recipe(module.Config(**row.options))
        yield (
            f"{name}: recipe",
            [{key: getattr(p, key) for key in OF_A_PHASE} for p in recipe],
        )
        config = small_config(module, row.options)
        if (method, config) not in seen:
            seen[method, config] = digest(_played(module, config, optimiser_of))
        yield f"{name}: losses and scores", seen[method, config]


def small_config(module: object, options: dict) -> object:
    names = [field.name for field in dataclasses.fields(module.Config)]
    sizes = {
        n: SIZE
        for n in names
        if n.endswith("_size") and n not in ("batch_size", "pool_size")
    }
    return module.Config(
        **options | sizes | {n: v for n, v in TINY.items() if n in names}
    )


def small_model(module: object, config: object) -> nn.Module:
    takes = module.inputs(config)
    torch.manual_seed(0)
    parts = {}
    if takes.word_vectors:
        parts["word_vectors"] = torch.from_numpy(numbers(3, SIZES.text, SIZE))
    if takes.image == "pixels":
        parts["image_network"] = SmallNetwork()
    model = module.Model(config, SIZES, **parts)
    if takes.fit:
        model.fit([(images_of(takes, 40), text_of(takes, 40))])
    return model


def _played(module: object, config: object, optimiser_of: Callable) -> dict:
    takes, phases = module.inputs(config), module.recipe(config)
    model, made = small_model(module, config), {}
    if phases:
        optimiser = optimiser_of(model, phases[0])
        for group in optimiser.param_groups:
            group["lr"] = phases[0].learning_rates[0] * group["factor"]
        made["losses"] = []
        for number in range(3):
            terms = model.loss(batch_of(takes, phases[0], number))
            made["losses"].append(terms)
            optimiser.zero_grad()
            sum(terms.values()).backward()
            optimiser.step()
    model.eval()
    with torch.no_grad():
        images, text = (
            model.encode_images(images_of(takes, 5)),
            model.encode_captions(text_of(takes, 9)),
        )
        made["scores"] = model.similarity(images, text)
        if takes.scores:
            made["parts"] = model.scores(images, text)
        if takes.caption_similarity:
            made["sentences"] = model.caption_similarity(text, text)
        if takes.attention:
            made["attention"] = model.attention(
                tuple(x[[0, 1]] for x in images), tuple(x[[0, 0]] for x in text)
            )
    return made


class SmallNetwork(nn.Module):
    """Pixels in [0, 1] to pooled features and a map."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, SIZES.image, 3, 4)
        self.norm = nn.BatchNorm2d(SIZES.image)

    def forward(self, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        maps = self.norm(self.convolution(pixels - 0.5)).relu()
        return maps.mean((2, 3)), maps


def images_of(takes: methods.Inputs, count: int, seed: int = 1) -> torch.Tensor:
    if takes.image == "pixels":
        values = np.random.default_rng(seed).integers(
            0, 256, (count, 3, 16, 16), dtype=np.uint8
        )
        return torch.from_numpy(values)
    shape = (3, SIZES.image) if takes.image == "regions" else (SIZES.image,)
    return torch.from_numpy(numbers(seed, count, *shape))


def text_of(takes: methods.Inputs, count: int, seed: int = 2) -> methods.Captions:
    # up to seven words; vectors have the length 1
    if takes.text in ("sentence", "phrase"):
        values = torch.from_numpy(numbers(seed, count, SIZES.text))
        return methods.Captions(
            values=values, lengths=torch.ones(count, dtype=torch.int64)
        )
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 8, count)
    lengths[0] = 7
    there = np.arange(7) < lengths[:, None]
    words = rng.integers(1, SIZES.text, (count, 7)) * there
    if takes.text == "contextual":
        words = numbers(seed, count, 7, SIZES.text) * there[..., None]
    return methods.Captions(
        values=torch.from_numpy(words), lengths=torch.from_numpy(lengths)
    )


def batch_of(takes: methods.Inputs, phase: methods.Phase, seed: int) -> object:
    """Retrieval: 8 rows of 6 groups; phrases: 6 chains, 5 proposals an image."""
    ids = torch.tensor([0, 1, 2, 3, 4, 5, 0, 3])
    if phase.captions_per_image > 1:
        ids = ids[:4].repeat_interleave(phase.captions_per_image)
    images, text = images_of(takes, 6, seed), text_of(takes, len(ids), seed)
    if takes.task == "retrieval":
        pool = {"pool": text_of(takes, 5, seed + 9), "pool_ids": torch.arange(5)}
        return methods.Batch(
            images=images[ids],
            captions=text,
            group_ids=ids,
            class_ids=ids,
            **(pool if phase.pool else {}),
        )
    ious = torch.from_numpy(numbers(seed + 20, len(ids), 5)).abs()
    ious[ids // 2 == 2, -1] = torch.nan
    proposals = torch.from_numpy(numbers(seed + 30, 3, 5, SIZES.image))
    proposals[2, -1] = 0.0
    return methods.RegionBatch(
        regions=images[ids],
        phrases=text,
        proposals=proposals,
        image_of_row=ids // 2,
        ious=ious,
        chain_ids=ids,
    )


# Training -----------------------------------------------------------------------------


def golden_of_training(folder: Path) -> Values:
    from benchmark.scoring import validation
    from benchmark.train import sampling
    from benchmark.train.resumable_loop import best_epoch

    owners = np.array([0, 0, 1, 2, 2, 2, 3, 4, 4, 5, 5, 5])
    rng = np.random.default_rng(0)
    yield "batches", list(sampling.batches(owners, 5, 1, rng))
    yield "batches with siblings", list(sampling.batches(owners, 4, 3, rng))
    yield "batches of images", list(sampling.image_batches(owners, 4, rng))
    rsums = [3.0, 5.0, 5.0, 4.0]
    yield "selection", [best_epoch(rsums[:end]) for end in range(1, 5)]
    scores = torch.from_numpy(numbers(0, 12, 12).round(1))
    relevant = torch.from_numpy(owners[:, None] == owners)
    yield (
        "recalls of validation",
        validation.retrieval_recalls(scores, relevant, ("i2t", "t2i")),
    )
    ious = torch.from_numpy(numbers(1, 12, 12)).abs()
    ious[3, 8:], ious[5] = torch.nan, 0.2
    yield "recalls of localisation", validation.localisation_recalls(scores, ious)
    yield "pseudo-classes", sampling.cluster(numbers(2, 40, 5), 7, 0)


def golden_of_cells(folder: Path) -> Values:
    with contextlib.chdir(folder):
        tiny_cells.write_dataset()
        for kind in tiny_cells.KINDS:
            cell = tiny_cells.cell_of(kind, seed=1)
            tiny_cells.train_cell(cell)
            history = tiny_cells.history_of()
            for name in sorted(history):
                yield f"{kind}: history, {name}", rounded(history[name].tolist())
            yield f"{kind}: weights", tiny_cells.state_of()
            yield (
                f"{kind}: metrics",
                {
                    name: value
                    for name, value in tiny_cells.evaluated(cell).metrics.items()
                    if isinstance(value, float | int)
                },
            )


# Scoring ------------------------------------------------------------------------------

OWNERS = np.repeat(np.arange(20), [1, 3, 2, 5, 2] * 4)  # of captions


def golden_of_scoring(folder: Path) -> Values:
    from oracles import whole_matrices

    from benchmark.scoring import corrections, fusion, metrics
    from benchmark.scoring.ranking import (
        CORRECT_IOU,
        Matrices,
        localisation_ranks,
        sentence_ranks,
    )
    from benchmark.scoring.relevance import Relevance

    scores = {
        name: made_scores(seed)
        for seed, name in enumerate(("first", "second", "third"))
    }
    for groups in ("images", "pairs of images"):
        group_of_image = np.arange(20) // (2 if groups == "pairs of images" else 1)
        relevance = Relevance.of(group_of_image, OWNERS, 5)
        relevant = relevance.matrix
        for name, matrix in scores.items():
            ranks = whole_matrices.ranks_by_way(
                {"i2t": matrix, "t2i": matrix.T}, relevant
            )
            where = f"{name} scores, {groups}"
            yield f"{where}: ranks", {way: of_way.best for way, of_way in ranks.items()}
            yield f"{where}: metrics", metrics.retrieval_metrics(ranks)
            yield (
                f"{where}: folds",
                metrics.fold_metrics(ranks, relevance.fold_of_query),
            )
            yield (
                f"{where}: S",
                whole_matrices.score_metrics(matrix[relevant], matrix[~relevant]),
            )
            for folds in (1, 4):
                evaluated = evaluation_of(matrix, group_of_image, folds)
                for part, value in evaluated.items():
                    yield f"{where}: evaluation with {folds} folds, {part}", value
    matrix = scores["second"]
    sentences = numbers(7, len(OWNERS), len(OWNERS)).round(1)
    of_sentences = sentence_ranks(sentences, np.arange(len(OWNERS)), OWNERS)
    yield "sentences: ranks", of_sentences.best
    yield "sentences: metrics", metrics.rank_metrics("s2s", of_sentences)
    ious = np.abs(numbers(8, *matrix.shape))
    ious[3, 9:], ious[5] = np.nan, 0.2
    of_phrases = localisation_ranks(matrix, ious)
    yield "phrases: ranks", of_phrases.best
    limits = ious >= CORRECT_IOU, ~np.isnan(ious)
    yield "phrases: metrics", metrics.localisation_metrics(of_phrases, *limits)
    areas = fusion.Areas(3, Relevance.of(np.arange(20), OWNERS, 4))
    for number, matrix in enumerate(scores.values()):
        for tile in Matrices((7, 9), i2t=matrix):
            areas.add(number, tile)
    places = np.arange(20), np.arange(len(OWNERS))
    parts = list(scores.values())
    yield "fusion: average", by_name(fusion.mean(parts, *places))
    yield "fusion: adaptive weights", by_name(areas.weights())
    fused = fusion.fused(parts, areas.weights(), *places)
    yield "fusion: adaptive", by_name(fused)
    far = fusion.distance(scores["first"])
    phrases = np.array([0, 0, 3, 4, 4, 4, 9])
    regions = fusion.mean_of_phrases(np.abs(numbers(9, 20, 7)), phrases, far)
    yield "fusion: distances", [far, regions]
    mixed = [fusion.weighted(far, regions, alpha) for alpha in fusion.ALPHAS]
    yield "fusion: weighted", [{"i2t": scores, "t2i": scores.T} for scores in mixed]
    split = corrections.Asked("i2t", 20, len(OWNERS), Matrices((7, 9), i2t=parts[0]))
    bank = corrections.Asked(
        "i2t", 9, len(OWNERS), Matrices((4, 9), i2t=numbers(10, 9, len(OWNERS)))
    )
    for how, grid in corrections.GRIDS.items():
        asked = split, split if how == "dual_softmax" else bank
        correction = corrections.Correction(how, *asked, grid)
        corrected = []
        for tile in split.tiles:
            corrected += [correction.scores(tile, given) for given in grid]
        yield f"correction: {how}", rounded(corrected)


def by_name(scores: dict) -> dict[str, np.ndarray]:
    return {key.name: of_key for key, of_key in scores.items()}


def made_scores(seed: int) -> np.ndarray:
    """Cosines (I, C) float32 with ties; the higher the seed the less is right."""
    right = np.arange(20)[:, None] == OWNERS
    scores = (numbers(seed, 20, len(OWNERS)) + (2 - 0.7 * seed) * right) / 4
    return scores.round(1 + seed).astype(np.float32)


def evaluation_of(scores: np.ndarray, group_of_image: np.ndarray, folds: int) -> dict:
    from benchmark.scoring import evaluation
    from benchmark.scoring.ranking import Matrices
    from benchmark.scoring.relevance import Relevance

    relevance = Relevance.of(group_of_image, OWNERS, folds)
    result = evaluation.of_retrieval(Matrices((6, 11), i2t=scores), relevance)
    kept = result.scores
    return {
        "metrics": result.metrics,
        "ranks": {key.name: ranks.best for key, ranks in kept.ranks.items()},
        "ranks of all relevant": {
            key.name: ranks.values for key, ranks in kept.ranks.items()
        },
        "histograms": [kept.histograms.matched, kept.histograms.unmatched],
        "first answers": result.retrieved,
        "resamples of S": kept.replicates.astype(np.float32),
    }


# Statistics ---------------------------------------------------------------------------


def golden_of_statistics(folder: Path) -> Values:
    """With nine digits."""
    from benchmark.stats import comparisons, significance
    from benchmark.stats.claim_kinds import KINDS
    from benchmark.stats.comparisons import Sample
    from benchmark.stats.verdicts import Rule

    samples = made_samples(Sample, significance)
    for pool, name in (
        (samples, "presets"),
        ({k: samples[k] for k in "ab"}, "two presets"),
    ):
        spread = comparisons.spread(pool, set(pool) - {"d"})
        facts = {"pooled": spread.pooled, "own": spread.own, "prior": spread.prior}
        facts |= {"parts": {p: spread.part(p, n) for p in pool for n in (1, 3)}}
        yield (
            f"spread of seeds: {name}",
            rounded(facts | {"outliers": sorted(spread.outliers)}),
        )
    spread = comparisons.spread(samples, set(samples) - {"d"})
    found = []
    for first, second, is_paired in (
        *(("a", "b", False), ("a", "c", True), ("c", "d", False), ("e", "a", True)),
        *(("a", "f", False), ("b", "d", True), ("b", "e", False), ("a", None, False)),
    ):
        names = [name for name in (first, second) if name]
        pair = [samples[name] for name in names]
        compared = comparisons.compare(names, pair, spread, is_shared=is_paired)
        gap, doubt = compared.difference, compared.doubt
        images, trainings = compared.estimate, compared.on_test_set
        found.append((f"{first}-{second}", gap, doubt, images))
        facts = {"doubt": doubt}
        for name, estimate in (
            ("other images", images),
            ("other trainings", trainings),
        ):
            if estimate is not None:
                facts[name] = [
                    estimate.interval,
                    estimate.p(),
                    estimate.p(1.0),
                    estimate.p_above(1),
                ]
        yield f"comparison: {first}-{second}", rounded(facts)
    p_values = [estimate.p() for *_, estimate in found if estimate]
    yield "Holm", rounded(np.minimum(significance.holm_products(p_values), 1.0))
    for kind in ("ordered", "alike", "not_better"):
        for margin in (0.5, 4.0):
            rule = Rule(kind=KINDS[kind], margin=margin)
            known = [
                (gap, doubt, estimate) for _, gap, doubt, estimate in found if estimate
            ]
            products = significance.holm_products(
                [rule.p(estimate) for *_, estimate in known]
            )
            adjusted = np.minimum(products, 1.0)
            verdicts = [
                [
                    str(rule.conclusion(estimate, p)[0].value),
                    tuple(rule.limit(gap, doubt, 2.0)),
                ]
                for (gap, doubt, estimate), p in zip(known, adjusted, strict=True)
            ]
            yield f"verdicts: {kind}, margin {margin}", rounded(verdicts)
    part = spread.part("a", 3)
    yield (
        "interval over images",
        rounded(significance.score_interval(41.0, 6.5, 100.0, 30)),
    )
    over = significance.score_interval(41.0, 6.5, 100.0, 30)
    yield "interval with seeds", rounded(significance.with_seeds(41.0, over, part))


def made_samples(sample: type, significance: object) -> dict:
    """Six presets: d is a fusion, e varies far more than the others, f has one
    training, c no spread over images that is known."""
    samples = {}
    for number, preset in enumerate("abcdef"):
        seeds = range(1 if preset == "f" else 3 + number % 2)
        values, noise = {}, {}
        for seed in seeds:
            hits = (
                50
                + 40 * numbers(100 * number + seed, 30).astype(np.float64)
                + 5 * number
            )
            hits += (40 if preset == "e" else 2) * seed
            values[seed] = float(hits.mean())
            image_Q = np.repeat(np.arange(30), 5)
            noise[seed] = significance.deviations(np.repeat(hits, 5), image_Q, 30)
        samples[preset] = sample(values, None if preset == "c" else noise, 30)
    return samples


# The test -----------------------------------------------------------------------------

PARTS = {  # name -> what makes its values, and the stage whose version a change raises
    "readers": (golden_of_readers, "prepare"),
    "drawings": (golden_of_drawings, "prepare"),
    "text encoders": (golden_of_text_encoders, "encode"),
    "transformer": (golden_of_transformer, "encode"),
    "image encoders": (golden_of_image_encoders, "encode"),
    "presets": (golden_of_presets, "train"),
    "training": (golden_of_training, "train"),
    "cells": (golden_of_cells, "train"),
    "scoring": (golden_of_scoring, "evaluate"),
    "statistics": (golden_of_statistics, "report"),
}


@pytest.mark.parametrize("part", PARTS)
def test_the_bytes_are_as_before(part, tmp_path):
    make, stage = PARTS[part]
    found, broken = {}, ""
    try:
        for name, value in make(tmp_path):
            found[f"{part}: {name}"] = digest(value)
    except Exception as error:  # what cannot be made any more has other bytes, too
        broken = f" (after {len(found)} of them {type(error).__name__}: {error})"
        found[f"{part}: the next one"] = ""
    assert not (IS_WRITING and broken), broken
    known = json.loads(GOLDEN.read_text()) if GOLDEN.is_file() else {}
    if IS_WRITING:
        kept = {
            name: value
            for name, value in known.items()
            if not name.startswith(f"{part}: ")
        }
        GOLDEN.write_text(
            json.dumps(dict(sorted((kept | found).items())), indent=0) + "\n"
        )
        return
    expected = {
        name: value for name, value in known.items() if name.startswith(f"{part}: ")
    }
    changed = [
        name for name in expected | found if expected.get(name) != found.get(name)
    ]
    if all(name.endswith(": metrics") for name in changed):
        stage = "evaluate"
    assert not changed, (
        f"{changed[0]}{f' and {len(changed) - 1} more' * (len(changed) > 1)}: other bytes than in "
        f"tests/golden.json{broken}; raise `{stage}` in benchmark/versions.yaml if this is meant, "
        f"and see tests/test_golden.py"
    )
