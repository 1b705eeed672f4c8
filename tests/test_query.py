"""`query` scores anyone's text and picture as the evaluation scores those of the dataset."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_cells
import torch
from PIL import Image
from refusals import refusal
from test_encode import Stub, data_of, pictures_of
from tiny_cells import KNOWN, VECTORS

from benchmark.commands import query, query_features
from benchmark.data import prepared_tables
from benchmark.encode import pictures, sentences
from benchmark.evaluate.trained_cells import model_on_split, trained_cell
from benchmark.matching import scoring
from benchmark.season.parameters import FeatureSet, ImageEncoder, Params, SentenceEncoder
from seasons import params_of


def test_a_caption_has_the_vector_that_its_feature_folder_has(tmp_path, monkeypatch):
    tiny_cells.enter(tmp_path, monkeypatch)
    data = prepared_tables.read("tiny")
    for settings in (SentenceEncoder(), SentenceEncoder(standardise=True)):
        feature_set = sentences_of(settings)
        sentences.encode(params_of(), feature_set, data)
        stored = np.load(VECTORS / "sentence.npy").astype(np.float32)
        row = int(np.flatnonzero(data.captions["split"] == "test")[2])
        vector = query_features.sentence_vector(feature_set, data, data.captions["text"][row])
        np.testing.assert_array_equal(vector[0], stored[row])


def sentences_of(settings: SentenceEncoder) -> FeatureSet:
    return FeatureSet(
        dataset="tiny",
        reader="tiny",
        kind="sentences",
        encoder="mean_words",
        folder=str(VECTORS),
        source=str(KNOWN),
        sentence=settings,
    )


@pytest.mark.parametrize("standardise", [False, True])
def test_a_picture_has_the_features_that_its_feature_folder_has(standardise, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown, data = pictures_of(), data_of()
    loaded = SimpleNamespace(load=lambda name, folder: (Stub(), {"file": "stub"}))
    raw = SimpleNamespace(pictures=lambda: shown.__getitem__)
    for module in (pictures, query_features):
        monkeypatch.setattr(module, "raw_dataset", lambda params, name: raw)
        monkeypatch.setattr(module.encoders, "load", lambda name: loaded)
    feature_set = FeatureSet(
        dataset="tiny",
        reader="tiny",
        kind="pictures",
        encoder="torchvision_cnn",
        folder="data/features/tiny/stub",
        source="data/prepared/tiny",
        image=ImageEncoder(input_size=32, grid=4, standardise=standardise, pixels=32),
    )
    pictures.encode(params_of(), feature_set, data)
    for kind in ("pooled", "regions", "pixels"):
        stored = np.load(f"data/features/tiny/stub/{kind}.npy")
        again = query_features.picture_features(
            params_of(), feature_set, data, shown["p9.png"], kind
        )
        assert again.shape == stored[9:10].shape
        np.testing.assert_allclose(again.float(), stored[9:10].astype(float), atol=0.02)
    still = np.ones((4, 1))
    stored = np.full((4, 1), -0.25)  # of a channel that varies in other pictures
    assert query_features._standardised(3 * still[:1], still, stored).tolist() == [[-0.25]]
    imported = feature_set.image.model_copy(update={"features": "x.npy"})
    other = feature_set.model_copy(update={"image": imported})
    with pytest.raises(ValueError, match="features that were encoded here"):
        query_features.picture_features(params_of(), other, data, shown["p9.png"], "pooled")


@pytest.fixture
def scan(tmp_path, monkeypatch) -> Params:
    """A season with a trained cell, whose pictures are drawn."""
    tiny_cells.enter(tmp_path, monkeypatch)
    cell = tiny_cells.cell_of("scan")
    tiny_cells.train_cell(cell)
    read = prepared_tables.read

    def with_files(name):
        data = read(name)
        files = [f"{image}.png" for image in data.images["image_id"]]
        return replace(data, images=data.images.assign(file=files))

    monkeypatch.setattr(query.prepared_tables, "read", with_files)
    colours = SimpleNamespace(pictures=lambda: lambda file: Image.new("RGB", (30, 20), "red"))
    monkeypatch.setattr(query, "raw_dataset", lambda params, name: colours)
    params = params_of(cells={cell.key: cell})
    monkeypatch.setattr(query, "read_params", lambda season: params)
    return params


def test_a_text_is_scored_as_the_caption_that_it_is(scan):
    (cell,) = scan.cells.values()
    trained, data = trained_cell(cell), prepared_tables.read("tiny")
    on_split = model_on_split(trained, data, "test", torch.device("cpu"))
    matrix = scoring.score(on_split.model, on_split.inputs)
    for caption in (0, 4):
        text = on_split.texts[caption].upper()
        scores = query.score_text(scan, trained, on_split, data, text)
        torch.testing.assert_close(scores, matrix[:, caption])


def test_the_best_pictures_are_told_and_put_on_a_sheet(scan, capsys):
    assert refused_by(scan, "a red zebra", "--top", "3") is None
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 of 3 words are unknown: zebra"
    assert lines[1] == "scan on test of tiny, seed 0: rank, score, picture, caption"
    captions = prepared_tables.read("tiny").captions
    ranks, scores = [], []
    for line in lines[2:5]:
        rank, score, file, text = line.split(maxsplit=3)
        ranks, scores = [*ranks, rank], [*scores, float(score)]
        own = captions["image_id"] == file.removesuffix(".png")
        assert text == captions.loc[own, "text"].iloc[0]
    assert ranks == ["1.", "2.", "3."] and scores == sorted(scores, reverse=True)
    sheet = Image.open("reports/try/local/query_scan.png")
    assert sheet.size == (3 * query.SIDE, query.HEAD + query.SIDE + query.FOOT)
    assert sheet.getpixel((query.SIDE // 2, query.HEAD + query.SIDE // 2)) == (255, 0, 0)
    for tile in range(3):  # a label below each
        left, top = tile * query.SIDE, query.HEAD + query.SIDE
        label = sheet.crop((left, top, left + query.SIDE, top + query.FOOT))
        assert label.convert("L").getextrema()[0] < 64


def test_the_best_captions_of_a_picture_are_told(scan, capsys, monkeypatch):
    stored = np.load(tiny_cells.IMAGES / "regions.npy")
    monkeypatch.setattr(
        query, "picture_features", lambda *given: torch.from_numpy(stored[20:21].copy())
    )
    monkeypatch.setattr(query, "_feature_set", lambda params, folder: None)
    Image.new("RGB", (9, 9)).save("x.png")
    assert refused_by(scan, "--image", "x.png") is None
    lines = capsys.readouterr().out.splitlines()
    (cell,) = scan.cells.values()
    trained, data = trained_cell(cell), prepared_tables.read("tiny")
    on_split = model_on_split(trained, data, "test", torch.device("cpu"))
    matrix = scoring.score(on_split.model, on_split.inputs)
    best = matrix[20 - int(data.split("test").image_rows[0])].argsort(descending=True)[:5]
    owners = data.captions["image_id"].iloc[data.split("test").caption_rows].tolist()
    assert [line.split(maxsplit=2)[2] for line in lines[1:6]] == [
        f"{owners[n]}.png  {on_split.texts[n]}" for n in best
    ]
    sheet = Image.open("reports/try/local/query_scan.png")
    assert sheet.size == (5 * query.SIDE, query.HEAD + 2 * (query.SIDE + query.FOOT))
    middle = query.HEAD + query.SIDE // 2
    assert sheet.getpixel((query.SIDE // 2, middle)) == (0, 0, 0)  # the query
    assert sheet.getpixel((3 * query.SIDE // 2, middle)) == (255, 0, 0)


def refused_by(params: Params, *words: str):
    """None, or the error that the command ends with."""
    try:
        raise refusal(query, "scan", *words)
    except pytest.fail.Exception:
        return None
    except ValueError as error:
        return error


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("zebra quagga",), "'zebra quagga': no word of the query is in the vocabulary"),
        (("!?",), "no word of the query is in the vocabulary"),
        ((" ",), "1"),
        (("a dog", "--image", "x.png"), "both"),
        ((), "'scan' alone"),
        (("--image", "none.png"), "nothing"),
        (("a dog", "--dataset", "other"), "other"),
        (("a dog", "--seed", "7"), "seed 7"),
        (("a dog", "--top", "0"), "0"),
    ],
)
def test_what_cannot_be_asked_is_refused(scan, words, found):
    error = refused_by(scan, *words)
    assert found in error.found
    assert not Path("reports").exists()


@pytest.mark.parametrize("encoder", ["mean_words", "tfidf"])
def test_words_that_an_encoder_of_sentences_knows(encoder, tmp_path, monkeypatch):
    tiny_cells.enter(tmp_path, monkeypatch)
    feature_set = sentences_of(SentenceEncoder()).model_copy(update={"encoder": encoder})
    known = query_features.known_words(feature_set, prepared_tables.read("tiny"))
    assert "dog" in known and "quagga" not in known
    assert ("zebra" in known, "the" in known) == (encoder == "mean_words", encoder == "tfidf")


def test_a_preset_that_may_be_meant(scan):
    error = refusal(query, "scam", "a dog")
    assert "did you mean scan?" in error.found
