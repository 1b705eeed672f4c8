"""Folds of a dataset: how they are dealt, what is fitted in each, and a season of them
from its file to kept results."""

import contextlib
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from refusals import refused

from benchmark.boards import boards as boards_module
from benchmark.boards import claims_file, comparisons
from benchmark.boards.claims_file import read_seasons
from benchmark.boards.season_boards import read_boards, read_fold_boards
from benchmark.collect.__main__ import collect
from benchmark.commands import run, tune, verify
from benchmark.core.files import read_json
from benchmark.core.names import fold_of, folder_of, folds_of, prefix_of
from benchmark.data import prepared_tables, results
from benchmark.data.feature_folders import Words, write_card
from benchmark.data.prepared_tables import Prepared
from benchmark.data.results import KEPT_FILES
from benchmark.data.vocabularies import tokenise
from benchmark.encode import __main__ as encode
from benchmark.encode import drawn_pretraining
from benchmark.features.standardisation import Standardiser
from benchmark.prepare.folds import dealt, prepare_folds, splits_of
from benchmark.report.__main__ import write_report
from benchmark.scoring import checkpoints
from benchmark.season import pipeline
from benchmark.season.parameter_files import read_season
from benchmark.season.parameters import (
    FeatureSet,
    Params,
    ProposalEncoder,
    Season,
    SentenceEncoder,
)
from benchmark.season.plugins import ConfiguredMethod
from benchmark.season.resolving import resolve
from seasons import committed, write_params

COUNT = 3
SPLITS = {"train": 48, "val": 12, "test": 24}
SEASON = {
    "title": "Small",
    "datasets": {
        "tiny": {
            "reader": "shapes",
            "options": SPLITS,
            "image": {
                "network": "drawn_cnn",
                "input_size": 96,
                "grid": 2,
                "flip": False,
                "standardise": True,
                "pixels": 32,
            },
            "words": {"size": 8},
            "sentence": {"hglmm": {"centres": 2, "size": 6, "standardise": True}},
            "folds": COUNT,
            "fold_presets": ["!projection*"],
        }
    },
    "presets": ["cca", "vse", "projection_info_nce"],
    "claims": [{"better": "vse", "than": "cca", "metric": "rsum", "statement": "s"}],
    "corrections": {"nnn": ["vse"]},
    "seeds": [0, 1],
    "device": "cpu",
    "sentence_of": {"cca": "hglmm"},
    "options": {
        "vse": {"embedding_size": 8, "word_size": 4, "epochs": 1},
        "projection": {"hidden_size": 8, "embedding_size": 4, "epochs": 1},
    },
}
FOLDS = folds_of("tiny", COUNT)
SLUG = "drawn_cnn_96_g2_std_p32"


def test_names_of_folds_are_read_as_they_are_written():
    assert [fold.name for fold in FOLDS] == ["tiny_fold1", "tiny_fold2"]
    assert [fold_of(fold.name) for fold in FOLDS] == FOLDS
    assert (folder_of("tiny_fold2"), prefix_of("tiny_fold2")) == ("tiny_folds", "2/")
    for name in ("tiny", "tiny_fold", "tiny_fold0", "tiny_folds"):
        assert fold_of(name) is None
        assert (folder_of(name), prefix_of(name)) == (name, "")


# Dealing ------------------------------------------------------------------------------


def images_in_groups(
    sizes: dict[str, int], group: int = 1, unused: int = 2
) -> pd.DataFrame:
    splits = [
        s for s, count in (sizes | {"unused": unused}).items() for _ in range(count)
    ]
    ids = [f"i{n}" for n in range(len(splits))]
    groups = [f"{s}{n // group}" for n, s in enumerate(splits)]
    return pd.DataFrame({"image_id": ids, "split": splits, "group": groups})


def test_every_image_outside_of_validation_is_test_once():
    images = images_in_groups(SPLITS)
    folds = dealt(images, COUNT, "tiny")
    assert sorted(folds[images["split"] == "train"].unique()) == [1, 2]
    assert (folds[images["split"] == "test"] == 0).all()
    tested = images["split"] == "test"
    tested = tested.astype(int)
    for fold in FOLDS:
        splits = splits_of(fold, images["split"], folds)
        tested += splits == "test"
        assert (splits == "test").sum() == 24 and (splits == "train").sum() == 48
        for name in ("val", "unused"):
            assert ((splits == name) == (images["split"] == name)).all()
    assert (tested[images["split"].isin(["train", "test"])] == 1).all()
    assert (tested[~images["split"].isin(["train", "test"])] == 0).all()


def test_the_order_of_files_is_of_no_account():
    images = images_in_groups(SPLITS)
    folds = dealt(images, COUNT, "tiny")
    shuffled = images.sample(frac=1, random_state=1)
    assert dealt(shuffled, COUNT, "tiny").sort_index().equals(folds)
    in_order = folds[images["split"] == "train"].tolist()
    assert in_order != sorted(in_order) and in_order[::2] != [1] * 24
    hashes = images["image_id"].map(lambda name: sha256(name.encode()).hexdigest())
    in_order = folds[hashes[images["split"] == "train"].sort_values().index].tolist()
    assert in_order == [1, 2] * (len(in_order) // 2)


def test_groups_stay_together_and_sizes_are_as_equal_as_can_be():
    images = images_in_groups({"train": 47, "val": 6, "test": 24})
    persons = np.repeat(np.arange(16), [9, 5, 5, 4, *[2] * 12])
    is_train = images["split"] == "train"
    images.loc[is_train, "group"] = [f"p{person}" for person in persons]
    folds = dealt(images, COUNT, "tiny")[is_train]
    assert (folds.groupby(images["group"]).nunique() == 1).all()
    assert sorted(folds.value_counts()) == [23, 24]


@pytest.mark.parametrize(
    ("sizes", "count", "advice"),
    [
        (SPLITS, 2, "folds: 3"),
        (SPLITS, 4, "folds: 3"),
        ({"train": 100, "val": 4, "test": 30}, 2, "leave"),
        ({"train": 45, "val": 4, "test": 10}, 2, "folds: 6"),
        ({"train": 100, "val": 4, "test": 48}, 2, "folds: 3"),  # of 50 each
        ({"train": 30, "val": 4, "test": 24}, 2, "leave"),
        ({"train": 6, "val": 4, "test": 24}, 2, "leave"),
    ],
)
def test_folds_of_another_size_than_test_are_refused(sizes, count, advice):
    with refused(f"datasets.tiny: folds: {count}") as error:
        dealt(images_in_groups(sizes), count, "tiny")
    assert advice in error.value.do


def test_a_group_that_is_larger_than_a_fold_is_refused():
    with refused("datasets.tiny: folds"):
        dealt(images_in_groups(SPLITS, group=40), COUNT, "tiny")


# A season -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A folder in which a season with folds was run."""

    folder: Path
    params: Params


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Place:
    folder = tmp_path_factory.mktemp("folds")
    params = resolve("small", Season(**SEASON))
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(folder):
        patch.setattr(drawn_pretraining, "CLOSE_UPS", 64)
        patch.setattr(drawn_pretraining, "EPOCHS", 1)
        run.run(params)
        for kept in params.folders:
            collect(params, kept)
    return Place(folder, params)


@pytest.fixture
def params(place, monkeypatch) -> Params:
    monkeypatch.chdir(place.folder)
    return place.params


def test_a_fold_has_tables_and_a_card_of_its_own(params):
    whole = prepared_tables.read("tiny")
    tested = set(ids_of(whole, "test"))
    for fold in FOLDS:
        data = prepared_tables.read(fold.name)
        facts = data.card["fold"]
        assert (facts["number"], facts["count"]) == (fold.number, COUNT)
        assert data.card["split"] != whole.card["split"]
        assert data.card["counts"]["test"]["images"] == 24
        assert data.card["counts"]["train"]["captions"] == 48 * 5
        assert {"pictures", "captions", "items"} <= data.card["leakage"].keys()
        assert ids_of(data, "val") == ids_of(whole, "val")
        assert set(ids_of(whole, "test")) <= set(ids_of(data, "train"))
        assert tested.isdisjoint(ids_of(data, "test"))
        tested.update(ids_of(data, "test"))
        assert (
            data.captions["image_id"].map(split_of(data)) == data.captions["split"]
        ).all()
        queries = prepared_tables.read_queries(fold.name)
        assert len(queries["i2t"]) == 24 and len(queries["t2i"]) == 24 * 5
        assert data.sha256 != whole.sha256
    assert tested == set(ids_of(whole, "train")) | set(ids_of(whole, "test"))
    assert sorted(p.name for p in Path("data/cards/tiny_folds").iterdir()) == [
        "card.json",
        "queries.npz",
    ]


def ids_of(data: Prepared, split: str) -> list[str]:
    return data.images["image_id"].iloc[data.split(split).image_rows].tolist()


def split_of(data: Prepared) -> pd.Series:
    return data.images.set_index("image_id")["split"]


def test_images_are_standardised_by_the_training_rows_of_their_fold(params):
    of_whole = features_of("tiny", "pooled")
    for fold in FOLDS:
        split = split_of(prepared_tables.read(fold.name))
        is_train = split.to_numpy() == "train"
        for name in ("pooled", "regions"):
            channels = features_of(fold.name, name)[is_train]
            channels = channels.reshape(-1, channels.shape[-1])
            varying = channels.std(0) > 0
            assert varying.sum() > 10
            assert np.abs(channels.mean(0)).max() < 2e-3
            assert np.abs(channels.std(0)[varying] - 1).max() < 2e-3
        rows = split_of(prepared_tables.read("tiny")).index.get_indexer(split.index)
        in_order = of_whole[rows]
        assert np.abs(in_order[is_train].mean(0)).max() > 0.05  # fold 0's would be seen
        again = Standardiser.of(in_order, is_train)(in_order)
        assert_alike(features_of(fold.name, "pooled"), again)


def assert_alike(found: np.ndarray, expected: np.ndarray) -> None:
    # but for roundings to float16
    np.testing.assert_allclose(found, expected, rtol=4e-3, atol=4e-3)


def features_of(dataset: str, name: str) -> np.ndarray:
    path = Path(f"data/features/{dataset}/{SLUG}/{name}.npy")
    return np.load(path).astype(np.float32)


def test_other_arrays_of_images_are_in_the_order_of_the_fold(params):
    before = split_of(prepared_tables.read("tiny")).index
    for fold in FOLDS:
        rows = before.get_indexer(split_of(prepared_tables.read(fold.name)).index)
        for name in ("positions", "pixels"):
            whole = features_of("tiny", name)
            assert (features_of(fold.name, name) == whole[rows]).all()


def test_the_network_of_a_fold_gives_its_pooled_features(params):
    """Pooled output = (raw - mean) / deviation, of the whole dataset and of the fold."""
    states = {}
    for dataset in ("tiny", "tiny_fold1"):
        file = Path(f"data/features/{dataset}/{SLUG}/network.pt")
        states[dataset] = torch.load(file, weights_only=True)
    before = split_of(prepared_tables.read("tiny")).index
    rows = before.get_indexer(split_of(prepared_tables.read("tiny_fold1")).index)
    whole = states["tiny"]
    raw = features_of("tiny", "pooled")[rows] * whole["pooled_deviation"].numpy()
    raw += whole["pooled_mean"].numpy()
    of_fold = states["tiny_fold1"]
    expected = (raw - of_fold["pooled_mean"].numpy()) / of_fold[
        "pooled_deviation"
    ].numpy()
    assert_alike(features_of("tiny_fold1", "pooled"), expected)


def test_vectors_of_tokens_stay_with_their_captions(params):
    captions = [prepared_tables.read(name).captions for name in ("tiny", "tiny_fold1")]
    before, now = (list(table["caption_id"]) for table in captions)
    lengths = np.arange(len(before)) % 3 + 1
    number = np.repeat(np.arange(len(before)), lengths)
    arrays = {
        "contextual": number[:, None].astype(np.float16),
        "ends": lengths.cumsum(),
    }
    settings = SentenceEncoder(weights="any", standardise=False)
    folder = taken_to_fold_1("contexts", arrays, before, sentence=settings)
    ends = np.load(folder / "ends.npy")
    starts = np.r_[0, ends[:-1]]
    vectors = np.load(folder / "contextual.npy")
    assert before != now and len(vectors) == lengths.sum()
    for caption, start, end in zip(now, starts, ends, strict=True):
        row = before.index(caption)
        assert vectors[start:end, 0].tolist() == [row] * lengths[row]


def test_proposals_and_true_boxes_are_standardised_by_training_proposals(params):
    whole, data = (prepared_tables.read(name) for name in ("tiny", "tiny_fold1"))
    before, now = (list(each.used_images["image_id"]) for each in (whole, data))
    rng = np.random.default_rng(0)
    arrays = {
        "boxes": rng.uniform(1, 9, (len(before), 4, 4)).astype(np.float32),
        "proposals": rng.normal(3, 2, (len(before), 4, 5)).astype(np.float16),
        "truths": rng.normal(3, 2, (len(whole.regions), 5)).astype(np.float16),
    }
    arrays["boxes"][::5, 3] = 0  # no fourth proposal
    rows = [before.index(image) for image in now]
    folder = taken_to_fold_1(
        "proposals", arrays, before, proposals=ProposalEncoder(standardise=True)
    )
    boxes, proposals, truths = (
        np.load(folder / f"{name}.npy").astype(np.float32) for name in arrays
    )
    present = boxes.any(-1)
    assert (boxes == arrays["boxes"][rows]).all() and not present.all()
    is_train = (data.used_images["split"] == "train").to_numpy()
    counted = proposals[is_train][present[is_train]]
    assert np.abs(counted.mean(0)).max() < 2e-3
    assert np.abs(counted.std(0) - 1).max() < 2e-3
    assert (proposals[~present] == 0).all()
    given = arrays["proposals"][rows].astype(np.float32)
    counted = given[is_train][present[is_train]]
    expected = (arrays["truths"] - counted.mean(0)) / counted.std(0)
    assert_alike(truths, expected)
    assert list(data.regions["phrase_id"]) == list(whole.regions["phrase_id"])


def taken_to_fold_1(
    kind: str, arrays: dict, ids: list[str], **settings: object
) -> Path:
    source = Path(f"data/features/tiny/made_{kind}")
    source.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(source / f"{name}.npy", array)
    write_card(source, {"prepared_sha256": prepared_tables.read("tiny").sha256})
    feature_set = FeatureSet(
        dataset="tiny_fold1",
        reader="shapes",
        kind=kind,
        encoder="transformer",
        folder=f"data/features/tiny_fold1/made_{kind}",
        source=str(source),
        **settings,
    )
    assert feature_set.is_taken
    encode.take(feature_set, prepared_tables.read("tiny_fold1"))
    return Path(feature_set.folder)


def test_features_of_other_tables_are_not_taken(params):
    source = Path("data/features/tiny/made_other")
    source.mkdir(exist_ok=True)
    write_card(source, {"prepared_sha256": "another"})
    feature_set = FeatureSet(
        dataset="tiny_fold1",
        reader="shapes",
        kind="pictures",
        encoder="drawn_cnn",
        folder="data/features/tiny_fold1/made_other",
        source=str(source),
        image=params.datasets["tiny"].image,
    )
    data = prepared_tables.read("tiny_fold1")
    with refused(source / "card.json"):
        encode.take(feature_set, data)
    write_card(source, {"prepared_sha256": prepared_tables.read("tiny").sha256})
    earlier = data.card["fold"] | {"prepared_sha256": "another"}
    with refused("tiny_fold1", do="benchmark.prepare.folds tiny"):
        encode.take(feature_set, replace(data, card=data.card | {"fold": earlier}))


def test_words_and_vectors_of_sentences_are_fitted_to_the_captions_of_their_fold(
    params,
):
    words = {}
    for dataset in ("tiny", *(fold.name for fold in FOLDS)):
        data = prepared_tables.read(dataset)
        trained = data.captions["text"][data.captions["split"] == "train"]
        tokens = set(trained.map(tokenise).sum())
        words[dataset] = Words.read(Path(f"data/features/{dataset}/words_trained8"))
        assert set(words[dataset].words) <= tokens
        vectors = np.load(
            f"data/features/{dataset}/hglmm_6_c2_std_words_trained8/sentence.npy"
        ).astype(np.float32)
        is_train = (data.captions["split"] == "train").to_numpy()
        assert np.abs(vectors[is_train].mean(0)).max() < 2e-3
    assert not np.array_equal(words["tiny"].vectors, words["tiny_fold1"].vectors)


def test_cells_of_folds_are_trained_evaluated_and_kept_in_one_folder(params):
    presets = ["cca/0", "vse/0", "vse_nnn/0"]
    folder = Path("results/small/tiny_folds")
    assert sorted(path.name for path in folder.iterdir()) == sorted(KEPT_FILES)
    names = list(read_json(folder / "records.json"))
    assert names == [f"{fold.number}/{name}" for fold in FOLDS for name in presets]
    rsums = set()
    for fold in FOLDS:
        kept = results.read_kept("small", fold.name)
        assert list(kept) == presets
        for name, result in kept.items():
            record = result.record
            assert record.status == "ok", record.reason
            assert (record.dataset, record.images) == (fold.name, 24)
            assert record.split == f"drawn, fold {fold.number} of {COUNT}/test"
            assert len(result.scores.best("i2t")) == 24
            assert result.costs.scoring
            assert set(result.arrays) == {results.RANKS}
            assert result.retrieved  # beside what git keeps
            rsums.add((name, record.metrics["rsum"]))
    assert len(rsums) > len(presets)  # other images, other numbers
    assert len(results.read_kept("small", "tiny")) == len(params.kept_in("tiny")) == 8


def test_a_vocabulary_is_that_of_the_training_captions_of_the_fold(params):
    for dataset in ("tiny", "tiny_fold1", "tiny_fold2"):
        cell = params.cells[f"{dataset}-vse-0"]
        words = checkpoints.load(Path(cell.checkpoint)).words
        data = prepared_tables.read(dataset)
        trained = data.captions["text"][data.captions["split"] == "train"]
        counts = pd.Series(trained.map(tokenise).sum()).value_counts()
        least = ConfiguredMethod.of(cell).takes.min_count
        frequent = set(counts.index[counts >= least])
        assert {word for word in words if "<" not in word} == frequent
        everywhere = set(data.captions["text"].map(tokenise).sum())
        assert frequent < everywhere


def test_folds_have_a_board_beside_that_of_the_official_split(params):
    boards = read_boards(params)
    assert [board.dataset for board in boards] == ["tiny"]
    assert not boards[0].missing
    (board,) = read_fold_boards(params)
    assert board.dataset == "tiny_folds"
    assert board.title == f"{boards[0].title}, folds 1 to {COUNT - 1}"
    assert [fold.dataset for fold in board.fold_boards] == [f.name for f in FOLDS]
    assert [row.preset for row in board.rows] == ["cca", "vse", "vse_nnn"]
    assert board.test_image_count == 24 * len(FOLDS)
    for row in board.rows:
        values = comparisons.sample_of(board, row, "rsum").values
        of_folds = [fold.row(row.preset).mean("rsum") for fold in board.fold_boards]
        assert list(values.values()) == of_folds
    assert claims_file.digest_of_images(board) != claims_file.digest_of_images(
        boards[0]
    )


def test_a_season_without_results_on_folds_has_no_board_of_them(params):
    assert read_fold_boards(params.model_copy(update={"season": "another"})) == []


def test_pages_and_claims_of_a_season_tell_of_its_folds(params, monkeypatch):
    monkeypatch.setattr(boards_module, "MIN_TEST_QUERIES", 20)
    folder = write_report(params)
    page = (folder / "datasets/tiny_folds.md").read_text()
    assert "fold 2" in page
    assert "datasets/tiny_folds.md" in (folder / "README.md").read_text()
    season = read_seasons(folder.parent, "small")[0]
    official, folds = season.datasets
    assert folds.dataset == "tiny_folds"
    assert not folds.leaders  # it ranks no rows
    assert folds.split == official.split == "drawn"  # and so is no photograph
    assert folds.images == 24 * len(FOLDS)
    tested = [claim for claim in folds.claims if claim.parts]
    assert tested
    for claim in tested:
        assert all(part.seeds is None for part in claim.parts)


def test_what_was_made_is_not_made_again(params):
    stages = run.pipeline.all_stages(params)
    for name, stage in stages.items():
        if stage.kind in ("fetch", "prepare", "folds", "pretrain", "encode"):
            assert run.is_done(params, stage), name


def test_folds_are_dealt_again_to_the_byte(params):
    kept = Path("data/cards/tiny_folds/card.json")
    before, queries = kept.read_bytes(), prepared_tables.read_queries("tiny_fold2")
    assert len(prepare_folds(params, "tiny")) == len(FOLDS)
    assert kept.read_bytes() == before  # with the digests of the tables
    for way, images in prepared_tables.read_queries("tiny_fold2").items():
        assert np.array_equal(images, queries[way])


def test_raw_files_of_results_on_folds_are_those_of_the_dataset(params):
    write_params(params)
    record = results.read_kept("small", "tiny_fold1")["vse/0"].record
    verify.check_raw_files([record])
    with refused("data/raw/tiny"):
        verify.check_raw_files([record.model_copy(update={"manifest_sha256": "x"})])


def test_settings_are_not_tuned_on_a_fold(params, monkeypatch):
    monkeypatch.setattr(tune, "read_params", lambda *names: params)
    parser = tune.argparse.ArgumentParser()
    tune.configure(parser)
    words = ["vse", "--dataset", "tiny_fold1", "--option", "epochs=2"]
    with refused("--dataset", found="tiny"):
        tune.main(parser.parse_args(words))


def test_a_cell_of_a_fold_is_run_alone(params, monkeypatch):
    monkeypatch.setattr(
        run,
        "settings_of",
        lambda *_: params.datasets["tiny"].model_copy(
            update={"fold_presets": ["*"], "fold_seeds": [4]}
        ),
    )
    parser = run.argparse.ArgumentParser()
    run.configure(parser)
    words = ["projection_info_nce", "--dataset", "tiny_fold2", "--seed", "4"]
    of_run = run.params_of(parser.parse_args(words), "projection_info_nce")
    assert list(of_run.everything) == ["tiny_fold2-projection_info_nce-4"]
    with refused("--dataset tiny_fold3"):
        words[2] = "tiny_fold3"
        run.params_of(parser.parse_args(words), "projection_info_nce")


# Season files and pipelines -----------------------------------------------------------


def test_a_line_of_folds_changes_no_cell_of_the_dataset():
    before = committed("demo")
    declared = read_season("demo")
    shapes = declared.datasets["shapes"].model_copy(update={"folds": 4})
    datasets = declared.datasets | {"shapes": shapes}
    after = resolve("demo", declared.model_copy(update={"datasets": datasets}))
    contents = [pipeline._contents(params) for params in (before, after)]
    for path, old in contents[0].items():
        assert_kept_in_order(old, contents[1][path], str(path))
    names = [list(pipeline.all_stages(params)) for params in (before, after)]
    added = set(names[1]) - set(names[0])
    assert names[0] == [name for name in names[1] if name not in added]
    assert {"folds-shapes", "collect@shapes_folds", "train@shapes_fold3-cca-0"} <= added
    assert all("shapes_fold" in name or name == "folds-shapes" for name in added)


def assert_kept_in_order(old: object, new: object, where: str) -> None:
    if isinstance(old, dict):
        assert list(old) == [key for key in new if key in old], where
        for key, value in old.items():
            assert_kept_in_order(value, new[key], f"{where}: {key}")
    elif isinstance(old, list):
        assert old == [item for item in new if item in old], where
    else:
        assert old == new, where


def test_folds_have_presets_and_seeds_of_their_own():
    params = resolve("small", Season(**SEASON))
    keys = [key for key in params.everything if key.startswith("tiny_fold2")]
    assert keys == ["tiny_fold2-cca-0", "tiny_fold2-vse-0", "tiny_fold2-vse_nnn-0"]
    assert "tiny-projection_info_nce-1" in params.cells
    assert (list(params.datasets), params.folds) == (["tiny"], {"tiny": COUNT})
    cell = params.fusions["tiny_fold2-vse_nnn-0"]
    assert cell.folder == "data/cells/small/tiny_folds/2/vse_nnn/0"
    assert cell.members == ["data/cells/small/tiny_folds/2/vse/0"] and not cell.keeps


def test_what_is_fitted_is_fitted_anew_and_all_else_is_taken():
    settings = SEASON["datasets"]["tiny"]
    sentence = settings["sentence"] | {"transformer": {"weights": "mini"}}
    datasets = {"tiny": settings | {"sentence": sentence}}
    changes = {"datasets": datasets, "presets": ["cca", "projection_info_nce"]}
    changes["claims"] = []
    changes |= {
        "corrections": {},
        "sentence_of": {"cca": "hglmm", "projection": "transformer"},
    }
    datasets["tiny"].pop("fold_presets")
    params = resolve("small", Season(**SEASON | changes))
    sources = {}
    for feature_set in params.feature_sets.values():
        if feature_set.dataset == "tiny_fold1":
            sources[Path(feature_set.folder).name] = feature_set.source
    assert sources == {
        SLUG: f"data/features/tiny/{SLUG}",
        "words_trained8": "data/prepared/tiny_fold1",
        "hglmm_6_c2_std_words_trained8": "data/features/tiny_fold1/words_trained8",
        "transformer_mini": "data/features/tiny/transformer_mini",
    }
    assert "tiny-transformer_mini" in params.feature_sets


@pytest.mark.parametrize("name", ["tiny_fold2", "tiny_folds"])
def test_a_dataset_with_the_name_of_a_fold_is_refused(name):
    datasets = {name: SEASON["datasets"]["tiny"]}
    with refused(f"datasets.{name}", do="rename"):
        resolve("small", Season(**SEASON | {"datasets": datasets}))


def test_presets_of_folds_without_folds_are_refused():
    with pytest.raises(ValueError, match="folds"):
        Season(**SEASON | {"datasets": {"shapes": {"fold_presets": ["vse"]}}})


def test_what_a_preset_needs_is_run_on_folds_too():
    settings = SEASON["datasets"]["tiny"] | {"fold_presets": ["*_i2t_lse"]}
    changes = {"datasets": {"tiny": settings}, "presets": ["scan_t2i_avg_i2t_lse"]}
    changes["claims"] = []
    with refused("scan_t2i_avg_i2t_lse", do="fold_presets"):
        resolve("small", Season(**SEASON | changes | {"corrections": {}}))
