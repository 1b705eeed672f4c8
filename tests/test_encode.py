"""The stage encode: kills survived, statistics of the training split only, encoders by
file."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import builders
import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn

from benchmark import features
from benchmark.data.feature_folders import Words, read_array, write_card
from benchmark.data.prepared_tables import Prepared
from benchmark.encode import __main__ as encode
from benchmark.encode import images
from benchmark.encode.__main__ import captions_of, phrases_of
from benchmark.features import drawn_cnn
from benchmark.scoring import inputs
from benchmark.season.parameters import (
    Cell,
    FeatureSet,
    ImageEncoder,
    SentenceEncoder,
    WordVectors,
)
from seasons import params_of

pytestmark = pytest.mark.usefixtures("empty_folder")

FOLDER = Path("data/features/tiny/stub")
SPLITS = ["train"] * 6 + ["val"] * 2 + ["test"] * 3 + ["unused"]
PARAMS = params_of()


class Stub(nn.Module):
    """Two channels, changed by mirroring, and a dead one."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("pooled_mean", torch.zeros(3))
        self.register_buffer("pooled_deviation", torch.ones(3))
        self.look = nn.Conv2d(3, 3, (1, 3), padding=(0, 1))
        self.norm = nn.BatchNorm2d(3)
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            self.look.weight.copy_(
                torch.randn(self.look.weight.shape, generator=generator)
            )
            self.look.weight[2] = 0
            self.look.bias.fill_(0.5)
            self.norm.running_mean.copy_(torch.tensor([0.1, 0.2, 0.3]))
            self.norm.running_var.copy_(torch.tensor([0.5, 2.0, 3.0]))

    def forward(self, pixels):
        maps = torch.nn.functional.avg_pool2d(
            torch.relu(self.norm(self.look(pixels))), 4
        )
        return (maps.mean((2, 3)) - self.pooled_mean) / self.pooled_deviation, maps


def pictures_of(mirrored: bool = False) -> dict[str, Image.Image]:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (len(SPLITS), 8, 8, 3), dtype=np.uint8)
    pixels = pixels.repeat(4, axis=1).repeat(4, axis=2)
    if mirrored:
        pixels = pixels[:, :, ::-1]
    return {
        f"p{n}.png": Image.fromarray(np.ascontiguousarray(x))
        for n, x in enumerate(pixels)
    }


def data_of() -> Prepared:
    ids = [f"p{n}" for n in range(len(SPLITS))]
    images = pd.DataFrame({"image_id": ids, "split": SPLITS, "group": ids})
    images["file"] = images["image_id"] + ".png"
    return builders.prepared_on_disk(images, pd.DataFrame(), pd.DataFrame())


def feature_set_of(kind: str, encoder: str, source: str = "", **settings) -> FeatureSet:
    names = {"dataset": "tiny", "reader": "tiny", "folder": str(FOLDER)}
    return FeatureSet(kind=kind, encoder=encoder, source=source, **names, **settings)


@pytest.fixture
def stage(monkeypatch):
    monkeypatch.setattr(images, "CHUNK", 4)
    opened: list[str] = []

    def run(shown=None, data=None, dies_at=None, network=Stub, **settings):
        shown = shown or pictures_of()
        shutil.rmtree(FOLDER, ignore_errors=True)  # as DVC does before it runs a stage

        def open_picture(file):
            if file == dies_at:
                raise KeyboardInterrupt
            opened.append(file)
            return shown[file]

        loaded = SimpleNamespace(
            load=lambda name, folder: (network(), {"file": "stub"})
        )
        dataset = SimpleNamespace(pictures=lambda: open_picture)
        monkeypatch.setattr(images, "raw_dataset", lambda params, name: dataset)
        image = ImageEncoder(**{"input_size": 32, "grid": 4, "flip": True} | settings)
        feature_set = feature_set_of("pictures", "torchvision_cnn", image=image)
        with monkeypatch.context() as patch:
            patch.setattr(features, "load", {"torchvision_cnn": loaded}.get)
            images.write_image_features(PARAMS, feature_set, data or data_of())
        return {path.stem: np.load(path) for path in FOLDER.glob("*.npy")}

    run.opened = opened
    return run


def on_grid(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Regions (I, 4, 4, F) where they were before the salient ones came first."""
    grid = np.empty_like(arrays["regions"])
    positions = arrays["positions"][:, :, None].astype(np.int64)
    np.put_along_axis(grid, positions, arrays["regions"], axis=1)
    return grid.reshape(len(grid), 4, 4, -1)


def test_features_are_those_of_the_network_in_the_order_of_the_table(stage):
    arrays = stage(flip=False)
    # not the unused one
    pixels = np.stack([np.asarray(x) for x in pictures_of().values()])[:11]
    with torch.no_grad():
        pooled, maps = Stub().eval()(torch.tensor(pixels).permute(0, 3, 1, 2) / 255)
    np.testing.assert_allclose(arrays["pooled"], pooled, atol=2e-3)
    grid = maps.unfold(2, 2, 2).unfold(3, 2, 2).mean((4, 5))  # 4 x 4 of 8 x 8
    np.testing.assert_allclose(on_grid(arrays), grid.permute(0, 2, 3, 1), atol=2e-3)
    assert arrays["regions"].dtype == np.float16
    assert set(arrays) == {"pooled", "regions", "positions"}
    ids = [f"p{n}" for n in range(11)]
    assert read_array(FOLDER, "regions", "tiny", ids).shape == (11, 16, 3)
    card = json.loads((FOLDER / "card.json").read_text())
    assert card["weights"] == {"file": "stub"} and card["settings"]["grid"] == 4


def contents() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in FOLDER.iterdir()}


@pytest.mark.parametrize(
    "settings", [{}, {"pixels": 8, "standardise": True}], ids=["", "pixels"]
)
def test_a_killed_run_goes_on_and_leaves_the_same_bytes(stage, settings):
    stage(**settings)
    unbroken = contents()
    made = {"pooled.npy", "regions.npy", "positions.npy", "card.json"}
    assert set(unbroken) == made | ({"pixels.npy", "network.pt"} if settings else set())
    with pytest.raises(KeyboardInterrupt):
        # of other settings: not to be gone on with
        stage(dies_at="p6.png", grid=2, **settings)
    with pytest.raises(KeyboardInterrupt):
        stage(dies_at="p6.png", **settings)
    assert not FOLDER.exists()
    stage.opened.clear()
    stage(**settings)
    # by several threads, in any order
    assert sorted(stage.opened) == sorted(f"p{n}.png" for n in range(4, 11))
    assert contents() == unbroken
    assert not (Path(".scratch") / FOLDER).exists()


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("", None),  # replaced pictures have another manifest
        ("versions", lambda: {"encode": 99}),
        ("fingerprint", lambda: "another machine"),
        ("kind", lambda device: "a GPU"),
    ],
)
def test_a_killed_run_does_not_go_on_over_other_pictures_or_code(
    stage, name, other, monkeypatch
):
    with pytest.raises(KeyboardInterrupt):
        stage(dies_at="p6.png")
    stage.opened.clear()
    data = data_of()
    if name:
        monkeypatch.setattr(images, name, other)
    else:
        data = replace(data, card={"manifest": "another"})
    stage(data=data)
    assert stage.opened == [f"p{n}.png" for n in range(11)]


def test_standardised_by_the_training_split(stage):
    raw, standardised = stage(standardise=False), stage(standardise=True)
    for name in ("pooled", "regions"):
        before, after = (
            raw[name].astype(np.float64),
            standardised[name].astype(np.float64),
        )
        axes = tuple(range(before.ndim - 1))
        live, dead = after[..., :2], after[..., 2]
        np.testing.assert_allclose(live[:6].mean(axes), 0, atol=2e-3)
        np.testing.assert_allclose(live[:6].std(axes), 1, atol=2e-3)
        assert (dead == 0).all()  # a channel without spread is left at zero, not NaN
        mean, deviation = before[:6, ..., :2].mean(axes), before[:6, ..., :2].std(axes)
        expected = (before[..., :2] - mean) / deviation
        np.testing.assert_allclose(live, expected, atol=5e-3)
        assert abs(live[6:].mean(axes)).max() > 0.01


def random_network() -> drawn_cnn.Network:
    torch.manual_seed(3)
    network = drawn_cnn.Network(width=4)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            # so that pictures differ in every channel
            nn.init.uniform_(module.weight, 2, 4)
            module.running_mean.normal_(std=0.1)
            module.running_var.uniform_(0.5, 1.5)
    return network


def cell_with(backbone: str) -> Cell:
    names = dict.fromkeys(("dataset", "preset", "method", "family"), "tiny")
    folders = {"images": str(FOLDER), "folder": "results/a"}
    return Cell(
        **names,
        **folders,
        backbone=backbone,
        seed=0,
        options={},
        scaled=[],
        network=None,
    )


@pytest.mark.parametrize("standardise", [False, True])
def test_the_kept_network_gives_the_pooled_features(stage, standardise):
    settings = {
        "input_size": 32,
        "pixels": 32,
        "flip": False,
        "standardise": standardise,
    }
    arrays = stage(network=random_network, **settings)
    stored = torch.load(FOLDER / "network.pt", weights_only=True)
    assert not hasattr(stored, "_metadata")  # with it, the file would have other bytes
    network = inputs.image_network(cell_with("drawn_cnn")).eval()
    with torch.no_grad():
        pooled, maps = network(torch.from_numpy(arrays["pixels"]).float() / 255)
    np.testing.assert_allclose(pooled, arrays["pooled"], atol=5e-3)
    assert np.ptp(arrays["pooled"]) > 0.5
    if standardise:
        np.testing.assert_allclose(pooled[:6].mean(0), 0, atol=2e-3)
    assert maps.shape[:2] == (11, 4)
    structure = inputs.network_structure(cell_with("drawn_cnn"), 8)
    assert structure.state_dict().keys() == network.state_dict().keys()


# Words and sentences ------------------------------------------------------------------

CAPTIONS = pd.DataFrame(
    {
        "caption_id": ["b", "a", "c", "d"],
        "text": ["A dog runs!", "a red dog", "red", "zebra"],
        "split": ["train", "train", "test", "test"],
    }
)
WORDS = Words(("a", "dog", "red"), np.array([[1, 0], [3, 2], [4, -2]], np.float32))


def encode_captions(kind: str, encoder: str, source: str = "", **settings) -> None:
    data = builders.prepared_on_disk(pd.DataFrame(), CAPTIONS, pd.DataFrame())
    encode.TEXTS[kind](feature_set_of(kind, encoder, source, **settings), data)


def write_words() -> str:
    folder = Path("data/features/tiny/words")
    WORDS.save(folder)
    write_card(folder, {"vectors": "made up", "settings": {}})
    return str(folder)


def test_words_are_of_the_training_captions_and_kept_for_all(monkeypatch):
    """A fit sees training captions, tokenised; a file of vectors may know words of any
    caption."""
    calls = []

    def words_of(corpus, settings, keep):
        calls.append((corpus, settings, keep))
        return WORDS, {"vectors": "made up", "epochs": 3}

    loaded = SimpleNamespace(words=words_of)
    monkeypatch.setattr(features, "load", {"word2vec": loaded}.get)
    settings = WordVectors(size=2)
    encode_captions("words", "word2vec", words=settings)
    corpus = [["a", "dog", "runs"], ["a", "red", "dog"]]
    assert calls == [(corpus, settings, {"a", "dog", "runs", "red", "zebra"})]
    written = Words.read(FOLDER)
    assert (written.words, written.vectors.tolist()) == (
        WORDS.words,
        WORDS.vectors.tolist(),
    )
    card = json.loads((FOLDER / "card.json").read_text())
    assert (card["vectors"], card["epochs"], card["items"]) == ("made up", 3, 3)
    assert (card["dataset"], card["encoder"]) == ("tiny", "stub")
    assert card["settings"] == settings.model_dump()
    # again: the folder is replaced
    encode_captions("words", "word2vec", words=settings)
    assert {path.name for path in FOLDER.iterdir()} == {
        "card.json",
        "words.json",
        "words.npy",
    }


def test_sentence_features_are_standardised_by_the_training_captions():
    settings = SentenceEncoder(standardise=True)
    encode_captions("sentences", "mean_words", write_words(), sentence=settings)
    features = read_array(FOLDER, "sentence", "tiny", ["b", "a", "c", "d"])
    # of captions b and a
    mean, deviation = np.array([7 / 3, 0.5]), np.array([1 / 3, 0.5])
    expected = (np.array([[2, 1], [8 / 3, 0], [4, -2], [0, 0]]) - mean) / deviation
    np.testing.assert_allclose(features, expected, atol=5e-3)


def test_phrases_are_encoded_once_each_and_fitted_on_those_of_training_images(
    monkeypatch,
):
    rows = [
        ("p0", "a dog"),
        ("p0", "the cat"),
        ("p6", "a dog"),
        ("p8", "a wug"),
        ("p8", "the cat"),
    ]
    seen = {}

    def stub(phrases, is_train, words, settings):
        seen.update(phrases=phrases, is_train=is_train.tolist())
        return np.arange(6, dtype=np.float32).reshape(3, 2), {"fitted": "stub"}

    monkeypatch.setattr(features, "load", lambda name: SimpleNamespace(encode=stub))
    encode_phrases(rows, standardise=True)
    assert seen == {
        "phrases": ["a dog", "the cat", "a wug"],
        "is_train": [True, True, False],
    }
    vectors = read_array(FOLDER, "phrase", "tiny", seen["phrases"])
    # mean and deviation of two
    np.testing.assert_allclose(vectors, [[-1, -1], [1, 1], [3, 3]])


# none at all; of a test image alone
@pytest.mark.parametrize("rows", [[], [("p8", "a wug")]])
def test_without_training_phrases_nothing_is_fitted(rows):
    encode_phrases(rows)
    phrases = [phrase for _, phrase in rows]
    assert read_array(FOLDER, "phrase", "tiny", phrases).tolist() == [[0.0]] * len(rows)


def encode_phrases(rows: list[tuple], **settings) -> None:
    captions = pd.DataFrame(columns=["caption_id", "image_id", "text", "split"])
    regions = pd.DataFrame(rows, columns=["image_id", "phrase"])
    of = feature_set_of(
        "phrases", "hglmm", write_words(), sentence=SentenceEncoder(**settings)
    )
    encode.vectors(of, replace(data_of(), regions=regions, captions=captions))


LETTERS = """
import numpy as np

def encode(captions, is_train, words, settings):
    return np.array([[text.count("a"), len(text)] for text in captions], np.float32), {"by": "hand"}
"""


def test_a_text_encoder_is_dropped_in_by_one_file(tmp_path, monkeypatch):
    (tmp_path / "letters.py").write_text(LETTERS)
    monkeypatch.setattr(features, "__path__", [*features.__path__, str(tmp_path)])
    known = ["bilstm_max", "hglmm", "letters", "mean_words", "tfidf", "transformer"]
    assert features.text_encoders() == known
    encode_captions("sentences", "letters", write_words(), sentence=SentenceEncoder())
    vectors = read_array(FOLDER, "sentence", "tiny", ["b", "a", "c", "d"])
    assert vectors.tolist() == [[0, 11], [1, 9], [0, 3], [1, 5]]
    assert json.loads((FOLDER / "card.json").read_text())["by"] == "hand"


# Texts --------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path) -> Prepared:
    """A training image with one caption, and a test image with two."""
    images = pd.DataFrame({"image_id": ["t0", "i0"], "split": ["train", "test"]})
    images["group"] = images["image_id"]
    captions = pd.DataFrame(
        {
            "caption_id": ["c0", "c1", "c2"],
            "image_id": ["t0", "i0", "i0"],
            "text": ["A dog.", "A cat.", "A dog."],
            "split": ["train", "test", "test"],
        }
    )
    regions = pd.DataFrame(
        {
            "image_id": ["i0", "t0", "i0"],
            "phrase": ["a cat", "a dog", "a dog"],
        }
    )
    return Prepared(images, captions, regions, card={}, folder=tmp_path)


def test_every_caption_is_a_text_of_its_own(data):
    texts = captions_of(data)
    assert texts.ids == ["c0", "c1", "c2"]
    assert texts.texts == ["A dog.", "A cat.", "A dog."]
    assert texts.is_train.tolist() == [True, False, False]


def test_a_phrase_is_a_text_once_and_for_training_where_a_training_image_has_it(data):
    texts = phrases_of(data)
    assert texts.ids == texts.texts == ["a cat", "a dog"]
    assert texts.is_train.tolist() == [False, True]
