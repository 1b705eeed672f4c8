"""What splits share is found, and nothing of the test split reaches what is fitted."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from refusals import holds
from torch import nn

from benchmark.core.files import read_json
from benchmark.data import prepared_tables
from benchmark.data.feature_folders import Words
from benchmark.encode import __main__ as encode
from benchmark.features import torchvision_cnn, word2vec
from benchmark.fetch import __main__ as fetch
from benchmark.prepare import __main__ as prepare
from benchmark.prepare.leakage import (
    ALIKE,
    NEAR_BITS,
    PLAIN,
    Picture,
    leakage,
    measure,
    near_pairs,
    twins,
)
from benchmark.scoring import checkpoints, inputs
from benchmark.season.parameters import FeatureSet, Params, Season, SentenceEncoder
from benchmark.season.plugins import configured, method_of
from benchmark.season.resolving import resolve
from benchmark.train import __main__ as train
from benchmark.train.sampling import cluster
from seasons import write_params


def soft_scene(seed: int, size: tuple[int, int] = (90, 60)) -> Image.Image:
    noise = np.random.default_rng(seed).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC)


def measured(*pictures: Image.Image) -> list[Picture]:
    return measure(
        [str(k) for k in range(len(pictures))], lambda k: pictures[int(k)], "mine"
    )


def pairs(split: list[str], *pictures: Image.Image) -> list[list[int]]:
    return near_pairs(split, measured(*pictures)).to_numpy().tolist()


COPIES = {
    "all but one pixel": lambda x: Image.composite(
        Image.new("RGB", x.size, "red"), x, pixel(x.size)
    ),
    "fewer colours": lambda x: x.quantize(48).convert("RGB"),
    "half the size": lambda x: x.resize((45, 30), Image.Resampling.BICUBIC),
    "another shape": lambda x: x.resize((70, 70), Image.Resampling.BICUBIC),
    "brighter": lambda x: x.point(lambda value: min(255, value + 30)),
    "trimmed": lambda x: x.crop((1, 1, x.width - 1, x.height - 1)),
}


def pixel(size: tuple[int, int]) -> Image.Image:
    mask = Image.new("1", size)
    mask.putpixel((3, 3), 1)
    return mask


@pytest.mark.parametrize("change", COPIES)
def test_a_changed_copy_in_another_split_is_near(change):
    rows = pairs(
        ["train", "train", "test"],
        soft_scene(0),
        soft_scene(1),
        COPIES[change](soft_scene(1)),
    )
    assert [row[:2] for row in rows] == [[1, 2]]
    assert 0 <= rows[0][2] <= NEAR_BITS


def naive(split: list[str], pictures: list[Picture]) -> set[tuple[int, int, int]]:
    """From the definition, one pair at a time."""
    near = set()
    for (i, a), (j, b) in itertools.combinations(enumerate(pictures), 2):
        distance = (int(a.bits) ^ int(b.bits)).bit_count()
        if split[i] == split[j] or distance > NEAR_BITS or a.sha256 == b.sha256:
            continue
        x, y = (p.thumbnail.astype(float) for p in (a, b))
        if min(x.std((0, 1)).max(), y.std((0, 1)).max()) >= PLAIN:
            if np.corrcoef(x.ravel(), y.ravel())[0, 1] >= ALIKE:
                near.add((i, j, distance))
    return near


def test_near_pairs_are_those_of_a_naive_search():
    wide = [soft_scene(seed, (400, 300)) for seed in range(4)]
    # crops that wander off: distances and correlations on both sides of the bounds
    pictures = [w.crop((k, 0, 300 + k, 300)) for k in range(0, 60, 5) for w in wide]
    split = sorted(["train", "val", "test"] * 16, key=["train", "val", "test"].index)
    expected = naive(split, measured(*pictures))
    rows = pairs(split, *pictures)
    assert {tuple(row) for row in rows} == expected
    assert 20 < len(expected) < 300
    assert [row[2] for row in rows] == sorted(row[2] for row in rows)


def test_a_copy_of_less_or_more_contrast_is_near():
    scene = soft_scene(1)
    pale = scene.point(lambda value: 64 + value // 2)
    for first, second in ((scene, pale), (pale, scene)):
        (row,) = pairs(["train", "test"], first, second)
        assert row[:2] == [0, 1]


def test_captions_of_two_groups_with_the_same_words_are_twins_and_of_one_are_not():
    images = pd.DataFrame({"image_id": list("abcd"), "group": list("abcc")})
    images = images.assign(file="", split="test")
    texts = {"a": ["One dog.", "one dog"], "b": ["A cat", "Two"], "d": ["a cat!"]}
    texts["c"] = ["A cow", "a cow", "Two!"]
    rows = [(image, text) for image in texts for text in texts[image]]
    captions = pd.DataFrame(rows, columns=["image_id", "text"]).assign(split="test")
    assert twins(images, captions, []) == {"images": 0, "captions": 4}


def test_captions_without_words_are_twins_where_their_signs_are_the_same():
    images = pd.DataFrame({"image_id": list("abc"), "group": list("abc")})
    images = images.assign(file="", split="test")
    captions = pd.DataFrame({"image_id": list("abc"), "text": ["!!", "??", "!!"]})
    captions = captions.assign(split="test")
    assert twins(images, captions, []) == {"images": 0, "captions": 2}


def test_both_pictures_of_a_near_pair_are_twins_unless_they_are_of_one_group():
    scene = soft_scene(1)
    pictures = measured(scene, COPIES["half the size"](scene), soft_scene(2))
    files = [str(number) for number in range(len(pictures))]
    images = pd.DataFrame({"image_id": files, "file": files, "split": "test"})
    captions = pd.DataFrame({"image_id": files, "text": files, "split": "test"})
    for groups, count in (("abc", 2), ("aab", 0)):
        grouped = images.assign(group=list(groups))
        assert twins(grouped, captions, pictures)["images"] == count


def test_pictures_that_are_equal_are_no_near_pair():
    assert pairs(["train", "test"], soft_scene(1), soft_scene(1)) == []


def test_a_picture_without_blue_is_not_plain():
    red, green, _ = soft_scene(1).split()
    scene = Image.merge("RGB", (red, green, Image.new("L", red.size)))
    (row,) = pairs(["train", "test"], scene, COPIES["half the size"](scene))
    assert row[:2] == [0, 1]


def tables(texts: dict[str, list[str]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    images = pd.DataFrame(
        {"image_id": texts.keys(), "file": texts.keys(), "split": texts.keys()}
    )
    captions = [
        {"text": text, "split": split} for split in texts for text in texts[split]
    ]
    return images, pd.DataFrame(captions)


def test_captions_are_counted_as_they_are_and_by_their_words():
    images, captions = tables(
        {
            "train": ["A dog runs.", "a dog runs", "Two  cats!", "...", "A cow."],
            "val": ["A dog runs.", "two cats"],
            "test": ["A Dog runs", "Two cats?", "...", "A cow, sleeping."],
            "unused": ["A cow."],
        }
    )
    findings = leakage(images, captions, measured(*map(soft_scene, range(4))))
    # a full stop has no words
    assert (findings["captions"], findings["near_captions"]) == (2, 2)
    assert findings["items"]["captions"] == {"train": 2, "val": 1, "test": 1}
    assert findings["items"]["near_captions"] == {"train": 3, "val": 2, "test": 2}
    same, alike = findings["notes"][2].split("; ")
    assert holds(same, "2 captions") and holds(alike, "2", "case", "punctuation")
    assert "dog" not in str(findings).lower()


PLANTED = "zyzzyva"  # a word of one test caption only
NOUNS, VERBS = (
    ("dog", "cat", "cow", "child", "man", "bird"),
    ("runs", "sleeps", "eats", "jumps"),
)
SPLIT_OF = ["train"] * 12 + ["val"] * 3 + ["test"] * 3


class Stub(nn.Module):
    """Pooled (B, 4) and map (B, 4, 2, 2)."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.look = nn.Conv2d(3, 4, 16, 16)

    def forward(self, pixels):
        maps = self.look(pixels)
        return maps.mean((2, 3)), maps


def texts_of(number: int) -> list[str]:
    noun = NOUNS[number % 6]
    return [
        f"A {noun} {VERBS[number % 4]} near item {number}",
        f"The {noun}, number {number}",
    ]


def dataset(place: Path, planted_in: str | None) -> None:
    """Pictures and captions; the last image of one split may have noise and a strange
    word."""
    place.mkdir(parents=True)
    rows = ["image,split,caption"]
    planted_at = (
        len(SPLIT_OF) - 1 - SPLIT_OF[::-1].index(planted_in) if planted_in else -1
    )
    for number, split in enumerate(SPLIT_OF):
        picture, texts = soft_scene(number), texts_of(number)
        if number == planted_at:
            picture = Image.effect_noise(picture.size, 250).convert("RGB")
            texts[1] = f"{PLANTED} {PLANTED} {PLANTED} dog"
        picture.save(place / f"{number:02}.png")
        rows += [f'{number:02}.png,{split},"{text}"' for text in texts]
    (place / "captions.csv").write_text("\n".join(rows) + "\n")


def season(vectors: str | None) -> Params:
    sentence = {"centres": 2, "size": 4, "standardise": True}
    image = {
        "network": "mobilenet_v2",
        "input_size": 32,
        "grid": 6,
        "standardise": True,
    }
    settings = {
        "reader": "folder",
        "image": image,
        "words": {"size": 6, "vectors": vectors},
        "sentence": {"hglmm": sentence},
    }
    small = {"embedding_size": 4, "epochs": 2, "batch_size": 8}
    wanted = {
        "title": "Try",
        "datasets": {"mine": settings},
        "presets": ["two_branch_constraints", "scan_t2i_avg"],
        "seeds": [0],
        "device": "cpu",
        "options": {
            "two_branch_embedding": small | {"hidden_size": 8},
            "scan": small | {"word_size": 5, "decay_after": 1},
        },
    }
    return resolve("try", Season.model_validate(wanted))


def fitted_from_raw_files(
    place: Path, monkeypatch, planted_in: str | None, loaded: bool
) -> dict[str, object]:
    place.mkdir()
    monkeypatch.chdir(place)
    dataset(Path("data/raw/mine"), planted_in)
    params = season(write_vectors(Path("vectors.txt")) if loaded else None)
    write_params(params)
    fetch.fetch(params, "mine")
    prepare.prepare(params, "mine")
    tfidf = SentenceEncoder(size=4, standardise=True)
    words = next(s for s in params.feature_sets.values() if s.kind == "words")
    more = FeatureSet(
        dataset="mine",
        reader="folder",
        kind="sentences",
        encoder="tfidf",
        folder="data/features/mine/tfidf",
        source=words.folder,
        sentence=tfidf,
    )
    others = [s for s in params.feature_sets.values() if s != words]
    for feature_set in [words, *others, more]:
        encode.encode(params, feature_set)
    for cell in params.cells.values():
        train.train_cell(params, cell)
    return fitted(params)


def write_vectors(path: Path) -> str:
    """A GloVe file that knows every word, the planted one as well."""
    rng = np.random.default_rng(0)
    words = sorted(
        {
            PLANTED,
            "a",
            "the",
            "near",
            "item",
            "number",
            *NOUNS,
            *VERBS,
            *map(str, range(18)),
        }
    )
    rows = [
        " ".join([word, *(f"{x:.3f}" for x in rng.normal(size=6))]) for word in words
    ]
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def fitted(params: Params) -> dict[str, object]:
    """Vocabularies, words, features of what is not planted, clusters, and checkpoints'
    bytes."""
    data = prepared_tables.read("mine")
    facts: dict[str, object] = {}
    for path in sorted(Path("data/features").rglob("*.npy")):
        rows = np.load(path)
        if path.name == "sentence.npy":
            rows = rows[data.captions["image_id"].to_numpy() != planted_image(data)]
        elif path.name != "words.npy":
            rows = rows[data.images["image_id"].to_numpy() != planted_image(data)]
        facts[str(path)] = (
            rows.tobytes()
            if path.name != "words.npy"
            else vectors_but_of_planted(path.parent)
        )
    split = data.split("train")
    for cell in params.cells.values():
        method = method_of(cell.method)
        takes = method.inputs(configured(method, cell.options, cell.preset))
        takes = replace(takes, min_count=1)
        words = Words.read(Path(cell.words)) if cell.words else None
        cpu = torch.device("cpu")
        fed = train.training_data(data, split, cell, takes, words, None, cpu)
        vocabulary = fed.vocabulary
        facts[f"vocabulary of {cell.preset}"] = vocabulary and vocabulary.words
        facts[f"clusters of {cell.preset}"] = cluster(
            inputs.image_features(data, cell, "pooled")[split.images], 3, seed=0
        ).tolist()
        checkpoint = checkpoints.load(Path(cell.checkpoint))
        assert checkpoint.status == "ok"
        weights = {
            name: value.numpy().tobytes() for name, value in checkpoint.state.items()
        }
        facts[f"{cell.preset}: checkpoint"] = (
            checkpoint.words,
            checkpoint.epoch,
            weights,
        )
        facts[f"{cell.preset}: history"] = read_json(Path(cell.history))["history"]
    return facts


def planted_image(data: prepared_tables.Prepared) -> str:
    return data.images["image_id"].iloc[-1]


def vectors_but_of_planted(folder: Path) -> dict[str, bytes]:
    words = Words.read(folder)
    return {
        word: words.rows([word]).tobytes() for word in words.words if word != PLANTED
    }


@pytest.mark.parametrize("loaded", [False, True], ids=["trained words", "loaded words"])
def test_a_word_and_a_picture_of_test_change_nothing_that_is_fitted(
    tmp_path, monkeypatch, loaded
):
    facts = {"file": "stub", "sha256": "0" * 64}
    monkeypatch.setattr(
        torchvision_cnn, "load", lambda network, folder: (Stub(), facts)
    )
    monkeypatch.setattr(word2vec, "WORDS_SEEN", 10_000)
    plain = fitted_from_raw_files(tmp_path / "plain", monkeypatch, None, loaded)
    planted = fitted_from_raw_files(tmp_path / "planted", monkeypatch, "test", loaded)
    assert plain.keys() == planted.keys()
    assert [name for name in plain if plain[name] != planted[name]] == []
    noticed = fitted_from_raw_files(tmp_path / "noticed", monkeypatch, "train", loaded)
    changed = {Path(name).name for name in plain if plain[name] != noticed[name]}
    assert changed >= {
        "sentence.npy",
        "pooled.npy",
        "regions.npy",
        "vocabulary of scan_t2i_avg",
        "scan_t2i_avg: checkpoint",
        "two_branch_constraints: checkpoint",
    }
    assert ("words.npy" in changed) != loaded
