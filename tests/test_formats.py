"""Every format that the field shares, small but in its real layout, from fetch to the record."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import layouts
import numpy as np
import pandas as pd
import pytest
from raw_formats import (
    BOXES,
    COCO,
    FORMATS,
    FROM_PIXELS,
    IMPORTED,
    WHOLE_AND_PHRASES,
    season_of,
    small_cards,
    write_weights,
)

from benchmark.core.records import Record, read_record
from benchmark.encode import __main__ as encode
from benchmark.encode import proposals
from benchmark.evaluate import __main__ as evaluate
from benchmark.fetch import __main__ as fetch
from benchmark.prepare import __main__ as prepare
from benchmark.train import __main__ as train


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        small_cards(patch)
        yield


@pytest.fixture(scope="module")
def weights_dir(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    write_weights(folder)
    return folder


Play = Callable[[str], Path]


@pytest.fixture(scope="module")
def play(tmp_path_factory, weights_dir) -> Play:
    """Plays the season of a format, once; gives the folder in which it was played."""

    @cache
    def played(name: str) -> Path:
        folder, form = tmp_path_factory.mktemp("played"), FORMATS[name]
        form.write(folder / "mine")
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setattr(proposals, "CELLS", 1)  # CCA of 5,120 numbers takes its time
            params = season_of(name, weights_dir)
            fetch.fetch(params, form.reader, folder / "mine")
            prepare.prepare(params, form.reader)
            for feature_set in params.feature_sets.values():
                encode.encode(params, feature_set)
            for cell in params.cells.values():
                train.train_cell(params, cell)
            for cell in (*params.cells.values(), *params.fusions.values()):
                evaluate.evaluate_cell(params, cell)
        return folder

    return played


def cell_of(play: Play, name: str, preset: str) -> Path:
    return play(name) / "results/tiny" / FORMATS[name].reader / preset / "0"


def ranks_of(play: Play, name: str, preset: str) -> pd.DataFrame:
    return pd.read_parquet(cell_of(play, name, preset) / "scores/ranks.parquet")


def record_of(play: Play, name: str, preset: str) -> Record:
    return read_record(cell_of(play, name, preset))


def queries(ranks: pd.DataFrame) -> dict[str, int]:
    return ranks.groupby("direction").size().to_dict()


CELLS = [(name, preset) for name, form in FORMATS.items() for preset in form.presets]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "preset"), CELLS)
def test_every_format_is_played_to_its_record(play, name, preset):
    record, form = record_of(play, name, preset), FORMATS[name]
    assert (record.status, record.reason) == ("ok", "")
    assert record.split == f"{form.split}/test"
    assert (record.images, record.captions) == (form.images, form.captions)
    ranks = ranks_of(play, name, preset)
    if record.task == "localisation":
        assert queries(ranks) == {"p2r": 5 * form.images}
    elif form.reader == "cuhk_pedes":
        assert queries(ranks) == {"t2i": form.captions}
    else:
        assert queries(ranks).items() >= {"i2t": form.images, "t2i": form.captions}.items()
    for way, ranks_of_way in ranks.groupby("direction")["rank"]:
        if way in ("i2t", "t2i", "p2r"):
            for k in (1, 5, 10):
                share = 100 * sum(rank < k for rank in ranks_of_way) / len(ranks_of_way)
                assert record.metrics[f"{way}_r{k}"] == pytest.approx(share)


@pytest.mark.parametrize("name", IMPORTED)
def test_imported_features_belong_to_their_images(play, name):
    form = FORMATS[name]
    record = record_of(play, name, form.presets[0])
    ((network, file),) = form.features.items()
    assert record.image_features["weights"]["file"] == file
    assert record.image_features["settings"]["network"] == network
    images = pd.read_parquet(play(name) / "data/prepared" / form.reader / "images.parquet")
    assert set(images["file"]) == {""}
    regions = np.stack([layouts.features_of(image_id) for image_id in images["image_id"]])
    (folder,) = (play(name) / "data/features" / form.reader).glob("*imported")
    if (folder / "regions.npy").is_file():
        assert np.load(folder / "regions.npy").tolist() == regions.astype(np.float16).tolist()
        pooled = regions.astype(np.float64).mean(1)
    else:
        pooled = regions.reshape(len(images), -1)
    np.testing.assert_allclose(np.load(folder / "pooled.npy"), pooled, rtol=1e-3)


@pytest.mark.parametrize("name", [name for name in FORMATS if name.startswith("mscoco")])
def test_five_folds_of_mscoco_are_evaluated_separately(play, name):
    (preset,) = FORMATS[name].presets
    metrics = record_of(play, name, preset).metrics
    ranks = ranks_of(play, name, preset)
    assert queries(ranks).items() >= {"i2t_fold": 10, "t2i_fold": 50}.items()
    for way, per_fold, gallery in (("i2t", 2, 10), ("t2i", 10, 2)):
        within = ranks.loc[ranks["direction"] == f"{way}_fold", "rank"].to_numpy()
        whole = ranks.loc[ranks["direction"] == way, "rank"].to_numpy()
        assert (within <= whole).all() and within.max() < gallery
        folds = [100 * float((part < 1).mean()) for part in within.reshape(5, per_fold)]
        assert metrics["fold_values"][f"{way}_r1"] == pytest.approx(folds)
        assert metrics[f"fold_{way}_r1"] == pytest.approx(sum(folds) / 5)
    names = [f"fold_{way}_r{k}" for way in ("i2t", "t2i") for k in (1, 5, 10)]
    assert metrics["fold_rsum"] == pytest.approx(sum(metrics[name] for name in names))


def test_captions_of_mscoco_beyond_five_are_for_training_only(play):
    captions = pd.read_parquet(play("mscoco, tsv") / "data/prepared/mscoco/captions.parquet")
    more = captions[captions["text"] == "One more . "]
    assert set(more["image_id"]) == set(COCO["restval"]) and set(more["split"]) == {"train"}


@pytest.mark.parametrize("preset", FROM_PIXELS)
def test_persons_are_searched_by_captions_alone(play, preset):
    metrics = record_of(play, "cuhk_pedes", preset).metrics
    assert not [key for key in metrics if key.startswith(("i2t", "s2s", "fold"))]
    assert metrics["rsum"] == pytest.approx(sum(metrics[f"t2i_r{k}"] for k in (1, 5, 10)))
    ranks = ranks_of(play, "cuhk_pedes", preset)
    assert ranks["rank"].max() <= 3  # of six pictures three show the right person


PHRASE_CELLS = [(name, preset) for name, preset in CELLS if "phrase" in preset]


@pytest.mark.parametrize(("name", "preset"), PHRASE_CELLS)
def test_phrases_are_localised_among_the_proposals_of_files(play, name, preset):
    """Of the five phrases of an image three name the person, who alone is among the proposals."""
    record = record_of(play, name, preset)
    assert (record.task, record.phrases) == ("localisation", 20)
    metrics = record.metrics
    assert metrics["p2r_bound"] == pytest.approx(100 * 3 / 5)
    assert metrics["p2r_chance_r1"] == pytest.approx(100 * 3 / 5 / len(BOXES))
    assert metrics["rsum"] == pytest.approx(sum(metrics[f"p2r_r{k}"] for k in (1, 5, 10)))
    assert not [key for key in metrics if key.startswith(("i2t", "t2i", "overlap"))]
    ranks = ranks_of(play, name, preset)
    assert ((ranks["rank"] < len(BOXES)) == ranks["query"].map(names_person)).all()
    with np.load(cell_of(play, name, preset) / "scores/samples.npz") as arrays:
        assert {tuple(box) for box in arrays["p2r_boxes"].tolist()} <= set(BOXES)
        assert len(arrays["p2r_boxes"]) == 20


def names_person(phrase_id: str) -> bool:
    """<image>.jpg#<sentence>/<phrase> of layouts.marked_sentences."""
    return phrase_id.partition("#")[2] in ("0/0", "1/0", "3/0")


def test_both_files_of_proposals_give_the_same_boxes(play):
    expected = np.zeros((20, 8, 4), np.float32)
    expected[:, : len(BOXES)] = BOXES
    for name in ("entities, mat", "entities, npz"):
        (path,) = (play(name) / "data/features/flickr30k_entities").glob("*/boxes.npy")
        np.testing.assert_array_equal(np.load(path), expected)
    first, second = (
        record_of(play, name, "cca_phrases").metrics for name in ("entities, mat", "entities, npz")
    )
    assert first == second


def test_regions_and_phrases_weigh_in_on_whole_images(play):
    record = record_of(play, "entities, mat", "two_branch_weighted")
    assert record.task == "retrieval" and 0 <= record.metrics["alpha"] <= 1
    assert set(record.options["presets"]) == set(WHOLE_AND_PHRASES[:2])
