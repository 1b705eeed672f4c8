"""`query` scores anyone's text and image as the evaluation scores those of the
dataset."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_cells
import torch
from PIL import Image
from refusals import holds, refusal
from test_encode import Stub, data_of, pictures_of
from tiny_cells import KNOWN, VECTORS

from benchmark.commands import query
from benchmark.data import prepared_tables
from benchmark.encode import __main__ as encode
from benchmark.encode import images
from benchmark.evaluate.trained_cells import model_on_split, trained_cell
from benchmark.scoring import model_scores
from benchmark.season.parameters import (
    Cell,
    FeatureSet,
    ImageEncoder,
    Params,
    SentenceEncoder,
)
from seasons import params_of


def test_a_caption_has_the_vector_that_its_feature_folder_has(tmp_path, monkeypatch):
    tiny_cells.enter(tmp_path, monkeypatch)
    data = prepared_tables.read("tiny")
    for settings in (SentenceEncoder(), SentenceEncoder(standardise=True)):
        facts = {
            "dataset": "tiny",
            "reader": "tiny",
            "kind": "sentences",
            "encoder": "mean_words",
        }
        folders = {"folder": str(VECTORS), "source": str(KNOWN)}
        feature_set = FeatureSet(**facts, **folders, sentence=settings)
        encode.vectors(feature_set, data)
        stored = np.load(VECTORS / "sentence.npy").astype(np.float32)
        row = int(np.flatnonzero(data.captions["split"] == "test")[2])
        vector = query.sentence_vector(feature_set, data, data.captions["text"][row])
        np.testing.assert_array_equal(vector[0], stored[row])


@pytest.mark.parametrize("standardise", [False, True])
def test_an_image_has_the_features_that_its_feature_folder_has(
    standardise, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    shown, data = pictures_of(), data_of()
    loaded = SimpleNamespace(load=lambda name, folder: (Stub(), {"file": "stub"}))
    known = {"tiny": SimpleNamespace(pictures=lambda: shown.__getitem__)}
    for module in (images, query):
        monkeypatch.setattr(module, "raw_dataset", lambda params, name: known[name])
        monkeypatch.setattr(module.features, "load", lambda name: loaded)
    facts = {
        "dataset": "tiny",
        "reader": "tiny",
        "kind": "pictures",
        "encoder": "torchvision_cnn",
    }
    feature_set = FeatureSet(
        **facts,
        folder="data/features/tiny/stub",
        source="data/prepared/tiny",
        image=ImageEncoder(input_size=32, grid=4, standardise=standardise, pixels=32),
    )
    images.write_image_features(params_of(), feature_set, data)
    of_fold = feature_set.model_copy(update={"dataset": "tiny_fold1"})
    for kind in ("pooled", "regions", "pixels"):
        stored = np.load(f"data/features/tiny/stub/{kind}.npy")
        again = query.image_features(params_of(), of_fold, data, shown["p9.png"], kind)
        assert again.shape == stored[9:10].shape
        np.testing.assert_allclose(again.float(), stored[9:10].astype(float), atol=0.02)
    still = np.ones((4, 1))
    stored = np.full((4, 1), -0.25)  # of a channel that varies in other images
    assert query.standardised(3 * still[:1], still, stored).tolist() == [[-0.25]]
    varying = np.arange(4.0)[:, None]  # of other images than the sample's
    assert query.standardised(3 * still[:1], still, varying).tolist() == [[1.5]]
    imported = feature_set.image.model_copy(update={"features": "x.npy"})
    other = feature_set.model_copy(update={"image": imported})
    with pytest.raises(ValueError, match="encoded here"):
        query.image_features(params_of(), other, data, shown["p9.png"], "pooled")


@pytest.fixture
def scan(tmp_path, monkeypatch) -> Params:
    """A season with a trained cell."""
    tiny_cells.enter(tmp_path, monkeypatch)
    cell = tiny_cells.cell_of("scan")
    tiny_cells.train_cell(cell)
    data = prepared_tables.read("tiny")
    named = replace(data, images=data.images.assign(file=""))
    monkeypatch.setattr(query.prepared_tables, "read", lambda name: named)
    params = params_of(cells={cell.key: cell})
    monkeypatch.setattr(query, "read_params", lambda season: params)
    return params


def scored(params: Params):
    """The trained cell, its model with the test split, and all scores (I, C)."""
    (cell,) = params.cells.values()
    data = prepared_tables.read("tiny")
    trained = trained_cell(cell, data.sha256)
    on_split = model_on_split(trained, data, data.split("test"), torch.device("cpu"))
    return trained, on_split, model_scores.score(on_split.model, on_split.inputs)


def test_a_text_is_scored_as_the_caption_that_it_is_and_the_best_images_are_told(
    scan, capsys
):
    trained, on_split, matrix = scored(scan)
    for caption in (0, 4):
        text = on_split.texts[caption].upper()
        scores = query.score_text(
            scan, trained, on_split, prepared_tables.read("tiny"), text
        )
        torch.testing.assert_close(scores, matrix[:, caption])
    assert refused_by("a red zebra", "--top", "3") is None
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(": zebra")
    assert holds(lines[1], "scan", "test of tiny", "seed 0")
    captions = prepared_tables.read("tiny").captions
    scores = []
    for number, line in enumerate(lines[2:5], 1):
        rank, score, file, text = line.split(maxsplit=3)
        scores.append(float(score))
        own = captions["image_id"] == file
        assert rank == f"{number}." and text == captions.loc[own, "text"].iloc[0]
    assert scores == sorted(scores, reverse=True)


def refused_by(*words: str):
    """None, or the error that the command ends with."""
    try:
        raise refusal(query, "scan", *words)
    except pytest.fail.Exception:
        return None
    except ValueError as error:
        return error


def test_the_best_captions_of_an_image_are_told(scan, capsys, monkeypatch):
    stored = torch.from_numpy(np.load(tiny_cells.IMAGES / "regions.npy")[20:21])
    monkeypatch.setattr(query, "image_features", lambda *given: stored)
    monkeypatch.setattr(query, "_feature_set", lambda params, folder: None)
    Image.new("RGB", (9, 9)).save("x.png")
    assert refused_by("--image", "x.png") is None
    lines = capsys.readouterr().out.splitlines()
    _, on_split, matrix = scored(scan)
    data = prepared_tables.read("tiny")
    best = matrix[20 - int(data.split("test").image_rows[0])].argsort(descending=True)[
        :5
    ]
    owners = data.captions["image_id"].iloc[data.split("test").caption_rows].tolist()
    assert [line.split(maxsplit=2)[2] for line in lines[1:6]] == [
        f"{owners[n]}  {on_split.texts[n]}" for n in best
    ]


def test_what_cannot_be_asked_is_refused(scan):
    for words, found in (
        (("zebra quagga",), "'zebra quagga'"),
        ((" ",), "' '"),
        (("a dog", "--image", "x.png"), "both"),
        ((), "neither"),
        (("--image", "none.png"), "no such file"),
        (("a dog", "--dataset", "other"), "no such key"),
        (("a dog", "--seed", "7"), "no such key"),
        (("a dog", "--top", "0"), "0"),
    ):
        assert found in refused_by(*words).found
    assert "scan?" in refusal(query, "scam", "a dog").found


def test_a_model_that_is_not_here_is_named_with_what_trains_it(scan, monkeypatch):
    monkeypatch.setattr(Cell, "checkpoint", property(lambda cell: "none.pt"))
    error = refused_by("a dog")
    assert "none" in error.found and "rematch play" in error.do
    assert "--only" in error.do
