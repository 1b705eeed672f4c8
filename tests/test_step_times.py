"""Steps, scores and encodings are timed at the size of a batch, or told from less."""

import numpy as np
import pytest
import torch
from tiny_cells import SCAN, TWO_BRANCH

from benchmark.commands import step_times
from benchmark.commands.step_times import (
    CellTimes,
    InputSizes,
    cell_times,
    extrapolated,
)
from benchmark.season.parameters import (
    Cell,
    FeatureSet,
    ImageEncoder,
    ProposalEncoder,
    SentenceEncoder,
)

CPU = torch.device("cpu")
PHRASE = {"hidden_size": 8, "embedding_size": 6, "batch_size": 8, "epochs": 2}
PHRASE |= {"neighbourhood_sampling": True, "lambda3": 0.1, "lambda4": 0.1}
PIXELS = {"blocks": "1,1,1,1", "text_width": 0.125, "word_size": 4, "batch_size": 4}
PIXELS |= {"stage": 2, "hidden_size": 8, "image_hidden_size": 8, "embedding_size": 6}
KINDS = {  # method, options, shape of an image, pooled size, text size
    "regions": ("scan", SCAN, (4, 5), 5, 30),
    "sentences": ("two_branch_embedding", TWO_BRANCH, (8,), 8, 7),
    "pixels": ("dual_path", PIXELS, (3, 64, 64), 8, 30),
    "phrases": ("two_branch_phrase_embedding", PHRASE, (6, 5), 5, 7),
    "closed form": ("cca", {"embedding_size": 4}, (8,), 8, 7),
}


def times_of(kind: str) -> CellTimes:
    method, options, image, pooled, text = KINDS[kind]
    cell = Cell(
        dataset="tiny",
        preset=method,
        seed=0,
        method=method,
        family="paper",
        options=options,
        scaled=[],
        images="i",
        backbone="drawn_cnn",
        folder="data/cells/a",
    )
    fed = InputSizes(
        image=image,
        pooled=pooled,
        text=text,
        classes=9,
        rows=2000,
        lengths=(3, 7),
        vector=4,
        network="drawn_cnn",
    )
    return cell_times(cell, fed, "cpu", 0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_every_form_of_data_has_its_times(kind):
    times = times_of(kind)
    assert all(seconds > 0 for seconds in times.steps)
    assert len(times.steps) == {"phrases": 2, "closed form": 0}.get(kind, 1)
    assert (times.fit > 0) == (kind == "closed form")
    assert times.image > 0
    assert (times.caption > 0) == (times.pair > 0) == (kind != "phrases")


def test_what_fits_the_time_is_timed_whole(monkeypatch):
    sizes = run_with_clock(monkeypatch, lambda rows: 0.001 * rows, 100, share=9.0)
    assert sizes.pop("seconds") == pytest.approx(0.1)
    assert sizes["rows"] == [2, 2, 4, 16, 64, *5 * [100]]


def test_what_does_not_fit_is_told_from_fewer_rows(monkeypatch):
    sizes = run_with_clock(monkeypatch, lambda rows: 1 + 0.1 * rows, 1000, share=20.0)
    assert max(sizes["rows"]) < 1000
    assert sizes["seconds"] == pytest.approx(101.0)
    squares = run_with_clock(monkeypatch, lambda rows: 1e-3 * rows**2, 1000, share=9.0)
    assert max(squares["rows"]) < 1000
    assert squares["seconds"] == pytest.approx(1000.0)


def test_a_first_run_that_takes_all_the_time_is_the_last(monkeypatch):
    sizes = run_with_clock(monkeypatch, lambda rows: 5.0 * rows, 64, share=1.0)
    assert sizes["rows"] == [2] and sizes["seconds"] == pytest.approx(320.0)


def run_with_clock(monkeypatch, cost, size: int, share: float) -> dict:
    """What `seconds_at` says of work whose seconds `cost` gives, and the rows that it
    tried."""
    passed, rows = [0.0], []

    def work(count: int) -> None:
        rows.append(count)
        passed[0] += cost(count)

    monkeypatch.setattr(step_times, "clock", lambda device: passed[0])
    seconds = step_times.seconds_at(work, size, share, CPU)
    return {"rows": rows, "seconds": seconds}


def test_more_rows_never_take_less():
    assert extrapolated({8: 2.0, 32: 1.0}, 128) == 1.0
    assert extrapolated({4: 1.0}, 8) == 2.0
    assert extrapolated({2: 0.0, 4: 0.0}, 8) == 0.0


def test_a_step_grows_with_the_square_of_its_rows_at_most():
    assert extrapolated({2: 1.0, 4: 16.0}, 8) == 64.0
    assert extrapolated({2: 1.0, 4: 2.0}, 8) == 4.0


def test_images_are_encoded_with_drawn_weights():
    settings = ImageEncoder(network="drawn_cnn", input_size=96, grid=3)
    times = step_times.encoding_times(set_of("pictures", image=settings), 5, "cpu", 0.1)
    assert times.item > 0
    assert times.shapes["regions"] == (9, 192) and times.shapes["pooled"] == (384,)
    settings = ImageEncoder(network="bottom_up", features="f30k_precomp")
    assert not step_times.encoding_times(
        set_of("pictures", image=settings), 5, "cpu", 1
    )


def test_boxes_of_a_file_are_described():
    settings = ProposalEncoder(how="file", boxes="b", count=7, network="drawn_cnn")
    feature_set = set_of("proposals", proposals=settings)
    times = step_times.encoding_times(feature_set, 5, "cpu", 0.1)
    assert times.item > 0 and times.shapes == {"proposals": (7, 4 * 192)}


def test_texts_that_nothing_is_fitted_to_are_encoded():
    settings = SentenceEncoder(hidden=8)
    feature_set = set_of("sentences", encoder="bilstm_max", sentence=settings)
    times = step_times.encoding_times(feature_set, 5, "cpu", 0.1)
    assert times.item > 0 and times.shapes == {"texts": (16,)}


def test_fisher_vectors_take_as_long_as_their_projection():
    settings = SentenceEncoder(size=600, centres=8)
    feature_set = set_of("sentences", encoder="hglmm", sentence=settings)
    times = step_times.encoding_times(feature_set, 100, "cpu", 0.1)
    assert times.fitted > times.item > 0 and times.shapes == {"texts": (600,)}
    words = set_of("sentences", encoder="mean_words", sentence=settings)
    assert step_times.encoding_times(words, 100, "cpu", 0.1) is None


def set_of(kind: str, encoder: str = "drawn_cnn", **settings: object) -> FeatureSet:
    return FeatureSet(
        dataset="tiny",
        reader="shapes",
        kind=kind,
        encoder=encoder,
        folder="data/features/tiny/x",
        source="tiny",
        **settings,
    )


def test_made_up_captions_have_the_lengths_that_are_asked_for():
    fed = InputSizes(
        image=(5,), pooled=5, text=30, classes=3, rows=9, lengths=(3, 7), network=""
    )
    takes = step_times.Inputs(image="pooled", text="tokens")
    inputs = step_times.images_and_captions(fed, takes, 20, 2, CPU)
    lengths = inputs.captions.lengths.numpy()
    assert set(lengths) == {3, 7} and len(lengths) == 40
    counted = (inputs.captions.values > 0).sum(1).numpy()
    assert np.array_equal(counted, lengths)
