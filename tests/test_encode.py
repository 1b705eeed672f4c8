"""Encoders and the stage around them: safe weights, kills survived, statistics of train only."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from gensim.models import KeyedVectors
from PIL import Image
from torch import nn
from torchvision import models

from benchmark import encode
from benchmark.encoders import torchvision_cnn, word2vec
from benchmark.errors import UserError
from benchmark.features import read_array
from benchmark.params import Encoding, ImageEncoder, Params, SentenceEncoder
from benchmark.prepared import Prepared

ROOT = Path(__file__).parent.parent
FOLDER = Path("data/features/tiny/stub")
SPLITS = ["train"] * 6 + ["val"] * 2 + ["test"] * 3 + ["unused"]
PARAMS = Params(
    season="try",
    title="Try",
    device="cpu",
    precision="float32",
    validation_images=None,
    weights_dir=None,
    datasets={},
    encodings={},
    cells={},
    fusions={},
)


class Stub(nn.Module):
    """Two channels that look to one side, so that a mirror image changes them, and a dead one."""

    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Conv2d(3, 3, (1, 3), padding=(0, 1))
        self.norm = nn.BatchNorm2d(3)
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            self.look.weight.copy_(torch.randn(self.look.weight.shape, generator=generator))
            self.look.weight[2] = 0
            self.look.bias.fill_(0.5)
            self.norm.running_mean.copy_(torch.tensor([0.1, 0.2, 0.3]))
            self.norm.running_var.copy_(torch.tensor([0.5, 2.0, 3.0]))

    def forward(self, pixels):
        found = torch.nn.functional.avg_pool2d(torch.relu(self.norm(self.look(pixels))), 4)
        return found.mean((2, 3)), found


def pictures_of(mirrored: bool = False) -> dict[str, Image.Image]:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (len(SPLITS), 8, 8, 3), dtype=np.uint8)
    pixels = pixels.repeat(4, axis=1).repeat(4, axis=2)
    if mirrored:
        pixels = pixels[:, :, ::-1]
    return {f"p{n}.png": Image.fromarray(np.ascontiguousarray(x)) for n, x in enumerate(pixels)}


def data_of(splits: list[str] = SPLITS) -> Prepared:
    images = pd.DataFrame(
        {
            "image_id": [f"p{n}" for n in range(len(splits))],
            "file": [f"p{n}.png" for n in range(len(splits))],
            "split": splits,
        }
    )
    return Prepared(images, pd.DataFrame(), pd.DataFrame(), {}, Path("unused"))


@pytest.fixture
def stage(tmp_path, monkeypatch):
    """Encode with the stub in an empty folder, four pictures at a time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(encode, "CHUNK", 4)
    opened: list[str] = []

    def run(pictures=None, data=None, dies_at=None, afresh=True, **settings):
        pictures = pictures or pictures_of()
        if afresh:
            shutil.rmtree(FOLDER, ignore_errors=True)  # as DVC does before it runs a stage

        def open_picture(file):
            if file == dies_at:
                raise KeyboardInterrupt
            opened.append(file)
            return pictures[file]

        loaded = SimpleNamespace(load=lambda network, folder: (Stub(), {"file": "stub"}))
        monkeypatch.setattr(encode.encoders, "load", lambda name: loaded)
        dataset = SimpleNamespace(pictures=lambda: open_picture)
        monkeypatch.setattr(encode, "raw_dataset", lambda params, name: dataset)
        image = ImageEncoder(**{"input_size": 32, "grid": 4, "flip": True} | settings)
        encoding = Encoding(
            dataset="tiny",
            reader="tiny",
            kind="image",
            encoder="stub",
            folder=str(FOLDER),
            image=image,
        )
        encode.encode_images(PARAMS, encoding, data or data_of())
        return {name: np.load(FOLDER / f"{name}.npy") for name in ("pooled", "regions")}

    run.opened = opened
    return run


def test_features_are_those_of_the_network_in_the_order_of_the_table(stage):
    found = stage(flip=False)
    pixels = np.stack([np.asarray(x) for x in pictures_of().values()])[:11]  # not the unused one
    with torch.no_grad():
        pooled, maps = Stub().eval()(torch.tensor(pixels).permute(0, 3, 1, 2) / 255)
    np.testing.assert_allclose(found["pooled"], pooled, atol=2e-3)
    cells = maps.unfold(2, 2, 2).unfold(3, 2, 2).mean((4, 5))  # of 8 x 8 cells 4 x 4
    expected = [cells[:, :, row, column] for row in range(4) for column in range(4)]
    np.testing.assert_allclose(found["regions"], torch.stack(expected, 1), atol=2e-3)
    assert found["regions"].dtype == np.float16
    ids = [f"p{n}" for n in range(11)]
    assert read_array(FOLDER, "regions", "tiny", ids).shape == (11, 16, 3)
    card = json.loads((FOLDER / "card.json").read_text())
    assert card["weights"] == {"file": "stub"} and card["settings"]["grid"] == 4


def test_cells_of_a_picture_and_of_its_mirror_image_line_up(stage):
    plain, mirror = stage(), stage(pictures_of(mirrored=True))
    np.testing.assert_allclose(plain["pooled"], mirror["pooled"], atol=2e-3)
    turned = mirror["regions"].reshape(11, 4, 4, 3)[:, :, ::-1].reshape(11, 16, 3)
    np.testing.assert_allclose(plain["regions"], turned, atol=2e-3)
    one_sided = stage(flip=False), stage(pictures_of(mirrored=True), flip=False)
    turned = one_sided[1]["regions"].reshape(11, 4, 4, 3)[:, :, ::-1].reshape(11, 16, 3)
    assert np.abs(one_sided[0]["regions"] - turned).max() > 0.02  # the network does look one way
    both = (one_sided[0]["regions"].astype(float) + turned) / 2
    np.testing.assert_allclose(plain["regions"], both, atol=2e-3)


def test_pictures_of_any_size_are_squashed_to_the_input_size(stage):
    wide = {name: picture.resize((90, 40)) for name, picture in pictures_of().items()}
    assert stage(wide)["regions"].shape == (11, 16, 3)


def test_a_killed_run_goes_on_and_leaves_the_same_bytes(stage):
    names = ("pooled.npy", "regions.npy", "card.json")
    stage()
    unbroken = [(FOLDER / name).read_bytes() for name in names]
    with pytest.raises(KeyboardInterrupt):
        stage(dies_at="p6.png", grid=2)  # of other settings: not to be gone on with
    with pytest.raises(KeyboardInterrupt):
        stage(dies_at="p6.png")
    assert not FOLDER.exists()
    stage.opened.clear()
    stage()
    assert stage.opened == [f"p{n}.png" for n in range(4, 11)]
    assert [(FOLDER / name).read_bytes() for name in names] == unbroken
    assert not (Path(".scratch") / FOLDER).exists()


def test_encoding_again_replaces_the_folder(stage):
    """Outside of DVC nobody removes the folder first, and hours of work must not end in vain."""
    stage()
    (FOLDER / "left-over.npy").touch()
    assert stage(afresh=False, data=data_of(SPLITS[:9]))["pooled"].shape == (9, 3)
    assert not (FOLDER / "left-over.npy").exists()


def test_what_a_kill_before_the_first_mark_left_is_not_used(stage, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(encode, "write_json", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
        stage()
    found = stage(data=data_of(SPLITS[:9]))
    assert found["pooled"].shape == (9, 3)


def test_standardised_by_the_training_split(stage):
    raw, found = stage(standardise=False), stage(standardise=True)
    for name in ("pooled", "regions"):
        before, after = raw[name].astype(np.float64), found[name].astype(np.float64)
        axes = tuple(range(before.ndim - 1))
        live, dead = after[..., :2], after[..., 2]
        np.testing.assert_allclose(live[:6].mean(axes), 0, atol=2e-3)
        np.testing.assert_allclose(live[:6].std(axes), 1, atol=2e-3)
        assert (dead == 0).all()  # a channel without spread is left at zero, not NaN
        mean, deviation = before[:6, ..., :2].mean(axes), before[:6, ..., :2].std(axes)
        expected = (before[..., :2] - mean) / deviation
        np.testing.assert_allclose(live, expected, atol=5e-3)
        assert abs(live[6:].mean(axes)).max() > 0.01


# Weights --------------------------------------------------------------------------------------


class Trap:
    """Unpickling it leaves a file behind."""

    def __reduce__(self):
        return Path.touch, (Path("sprung").absolute(),)


@pytest.fixture(scope="module")
def mobilenet() -> nn.Module:
    torch.manual_seed(0)
    return models.mobilenet_v2(weights=None).eval()


def test_a_pickle_is_refused_and_not_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mobilenet_v2-1.pth"
    writers = (
        lambda: torch.save(Trap(), path),
        lambda: torch.save({"weight": torch.zeros(2), "trap": Trap()}, path),
        lambda: torch.save(Trap(), path, _use_new_zipfile_serialization=False),
        lambda: path.write_bytes(pickle.dumps(Trap())),
    )
    for write in writers:
        write()
        with pytest.raises(UserError, match="mobilenet_v2-1.pth: expected a state dict of plain"):
            torchvision_cnn.load("mobilenet_v2", tmp_path)
        assert not Path("sprung").exists()
    pickle.loads(path.read_bytes())
    assert Path("sprung").exists()  # the trap works


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"<html>not found</html>"])
def test_a_file_that_is_no_weights_is_refused(tmp_path, content):
    path = tmp_path / "mobilenet_v2-1.pth"
    path.write_bytes(content)
    with pytest.raises(UserError, match="expected a state dict of plain tensors"):
        torchvision_cnn.read_state(path)


@pytest.mark.parametrize("content", [[torch.zeros(2)], {"epoch": 3}, torch.zeros(2)])
def test_other_plain_content_is_refused(tmp_path, content):
    path = tmp_path / "mobilenet_v2-1.pth"
    torch.save(content, path)
    with pytest.raises(UserError, match="state dict of plain tensors, found other objects"):
        torchvision_cnn.read_state(path)


def other_names(state: dict) -> dict:
    return {f"layer.{name}": value for name, value in state.items()}


def fewer(state: dict) -> dict:
    return dict(list(state.items())[:20])


def other_shapes(state: dict) -> dict:
    """As VGG-16 with the weights of VGG-19, and ResNets of different widths."""
    return state | {"features.0.0.weight": torch.zeros(16, 3, 3, 3)}


@pytest.mark.parametrize("change", [other_names, fewer, other_shapes])
def test_weights_of_another_network_are_refused(tmp_path, mobilenet, change):
    path = tmp_path / "mobilenet_v2-1.pth"
    torch.save(change(mobilenet.state_dict()), path)
    with pytest.raises(UserError, match="mobilenet_v2-1.pth: weights of another network"):
        torchvision_cnn.load("mobilenet_v2", tmp_path)


def test_missing_or_ambiguous_weights_are_told(tmp_path):
    with pytest.raises(UserError, match="exactly one file mobilenet_v2-.*found none.*--weights-"):
        torchvision_cnn.load("mobilenet_v2", tmp_path)
    for name in ("mobilenet_v2-1.pth", "mobilenet_v2-2.pth"):
        (tmp_path / name).touch()
    with pytest.raises(UserError, match="found mobilenet_v2-1.pth, mobilenet_v2-2.pth"):
        torchvision_cnn.load("mobilenet_v2", tmp_path)
    with pytest.raises(UserError, match="no image network 'resnet51'; .*resnet50"):
        torchvision_cnn.load("resnet51", tmp_path)


def test_features_are_what_torchvisions_classifier_sees(tmp_path, mobilenet):
    state = {k: v for k, v in mobilenet.state_dict().items() if not k.startswith("classifier")}
    torch.save(state, tmp_path / "mobilenet_v2-1.pth")  # it stops before the classifier
    network, facts = torchvision_cnn.load("mobilenet_v2", tmp_path)
    pixels = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    normalised = models.MobileNet_V2_Weights.IMAGENET1K_V1.transforms(resize_size=64, crop_size=64)
    with torch.no_grad():
        pooled, found = network(pixels)
        expected = mobilenet((pixels - _column(normalised.mean)) / _column(normalised.std))
        torch.testing.assert_close(mobilenet.classifier(pooled), expected)
        folded = encode._fused(network)(pixels)
    assert (pooled.shape, found.shape) == ((2, 1280), (2, 1280, 2, 2))
    torch.testing.assert_close(folded[1], found, rtol=1e-3, atol=1e-4)
    assert facts["file"] == "mobilenet_v2-1.pth" and len(facts["sha256"]) == 64


def _column(values: list[float]) -> torch.Tensor:
    return torch.tensor(values).view(1, 3, 1, 1)


# Words ----------------------------------------------------------------------------------------

CORPUS = ["a red dog", "a green dog runs", "the red cat", "a cat runs"] * 5
FIT = """
import hashlib
import numpy as np
from benchmark.encoders import word2vec
from benchmark.params import SentenceEncoder
word2vec.WORDS_SEEN = 1000
captions = ["a red dog", "a green dog runs", "the red cat", "a cat runs"] * 5
vectors, _ = word2vec.encode(captions, np.ones(20, bool), SentenceEncoder(size=8))
print(hashlib.sha256(vectors.tobytes()).hexdigest())
"""


def write_vectors(path: Path) -> None:
    vectors = KeyedVectors(2)
    vectors.add_vectors(["dog", "red"], np.array([[1.0, 2.0], [4.0, -2.0]], np.float32))
    vectors.save_word2vec_format(path, binary=True)


def test_a_caption_is_the_mean_of_its_known_words(tmp_path):
    write_vectors(tmp_path / "some.bin")
    settings = SentenceEncoder(size=2, vectors=str(tmp_path / "some.bin"))
    captions = ["Red dog!", "a dog", "red red dog", "a cat", ""]
    found, facts = word2vec.encode(captions, np.zeros(5, bool), settings)
    assert found.tolist() == [[2.5, 0.0], [1.0, 2.0], [3.0, np.float32(-2 / 3)], [0, 0], [0, 0]]
    assert (facts["words"], facts["known_tokens"], facts["tokens"]) == (2, 6, 9)
    assert facts["vectors"] == "some.bin" and len(facts["sha256"]) == 64


def test_loaded_vectors_are_checked(tmp_path):
    write_vectors(tmp_path / "some.bin")
    with pytest.raises(UserError, match="some.bin: expected vectors of size 300, found 2"):
        word2vec._loaded(tmp_path / "some.bin", 300)
    whole = (tmp_path / "some.bin").read_bytes()
    for content in (b"", whole[:-5], b"\x00\x01\x02", b"<html>"):
        (tmp_path / "some.bin").write_bytes(content)
        with pytest.raises(UserError, match="some.bin: expected a word2vec .bin file"):
            word2vec._loaded(tmp_path / "some.bin", 2)
    with pytest.raises(UserError, match="other.bin: expected a word2vec .bin file"):
        word2vec._loaded(tmp_path / "other.bin", 2)


def test_only_training_captions_shape_the_vectors(monkeypatch):
    monkeypatch.setattr(word2vec, "WORDS_SEEN", 1000)
    settings = SentenceEncoder(size=8)
    is_train = np.arange(len(CORPUS) + 2) < len(CORPUS)
    first, _ = word2vec.encode([*CORPUS, "a zebra", "red cat"], is_train, settings)
    second, _ = word2vec.encode([*CORPUS, "zebra", "zebra dog runs green"], is_train, settings)
    assert np.array_equal(first[:-2], second[:-2])
    assert np.ptp(first[:-2]) > 0
    assert (second[-2] == 0).all()  # zebra is in no training caption
    only_a, _ = word2vec.encode([*CORPUS, "a"], is_train[:-1], settings)
    assert np.array_equal(first[-2], only_a[-1])


def test_two_fits_agree_whatever_the_hash_seed():
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", FIT],
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    first, second = (run.communicate(timeout=120)[0] for run in runs)
    assert first == second
    assert len(first.strip()) == 64


def encode_two_captions(vectors: Path) -> None:
    captions = pd.DataFrame(
        {"caption_id": ["b", "a"], "text": ["dog", "red"], "split": ["train", "test"]}
    )
    encoding = Encoding(
        dataset="tiny",
        reader="tiny",
        kind="sentence",
        encoder="word2vec",
        folder=str(FOLDER),
        sentence=SentenceEncoder(size=2, vectors=str(vectors)),
    )
    data = Prepared(pd.DataFrame(), captions, pd.DataFrame(), {}, Path("unused"))
    encode.encode_sentences(encoding, data)


def test_sentence_features_are_written_in_the_order_of_the_captions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_vectors(tmp_path / "some.bin")
    encode_two_captions(tmp_path / "some.bin")
    assert read_array(FOLDER, "sentence", "tiny", ["b", "a"]).tolist() == [[1, 2], [4, -2]]


def test_encoding_sentences_again_replaces_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_vectors(tmp_path / "some.bin")
    for _ in range(2):
        encode_two_captions(tmp_path / "some.bin")
    assert read_array(FOLDER, "sentence", "tiny", ["b", "a"]).shape == (2, 2)
