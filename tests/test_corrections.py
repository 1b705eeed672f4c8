"""Corrections of scores for hubs: against loops, where they change nothing, and as
rows."""

import json
import shutil
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import report_seasons
import torch
from builders import board, outcome, standing
from oracles import ranking
from oracles import rescoring as naive
from tiny_cells import cell_of, enter, evaluated, fusion_of, scores_on_test, train_cell

from benchmark.boards import comparisons, flags
from benchmark.boards.season_boards import read_boards
from benchmark.commands import judged_results
from benchmark.core.errors import UserError
from benchmark.core.records import read_record
from benchmark.data import prepared_tables
from benchmark.data.rank_keys import RankKey
from benchmark.evaluate import __main__ as evaluate
from benchmark.evaluate.trained_cells import trained_cell
from benchmark.report.pages import result_tables
from benchmark.scoring import RefusedError, corrections, model_scores
from benchmark.scoring.corrections import GRIDS, Asked, Corrected, chosen
from benchmark.scoring.inputs import split_inputs
from benchmark.scoring.ranking import Matrices, ranks_of
from benchmark.scoring.relevance import Relevance
from benchmark.season import pipeline
from benchmark.season.parameter_files import read_params
from benchmark.season.parameters import Cell, Correction, Params
from benchmark.season.plugins import corrected_presets, presets
from benchmark.season.resolving import resolve
from seasons import FUSION, SCAN, TWO_BRANCH, season, with_dataset, write_params

IMAGES, CAPTIONS, BANK = 6, 11, 9
OWNERS = np.sort(np.r_[np.arange(IMAGES), np.arange(CAPTIONS - IMAGES)])
RELEVANCE = Relevance.of(np.arange(IMAGES), OWNERS)
GIVEN = {name: {"beta": 4.0} for name in GRIDS} | {"nnn": {"k": 3, "alpha": 0.7}}


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def asked_of_split_and_bank(
    how: str, way: str, scores: np.ndarray, bank: np.ndarray, size=(4, 5)
) -> list[Asked]:
    matrices = [scores, scores if how == "dual_softmax" else bank]
    turned = matrices if way == "i2t" else [matrix.T for matrix in matrices]
    tiles = [Matrices(size, i2t=matrix) for matrix in turned]
    return [
        Asked(way, *of.shape, each) for of, each in zip(matrices, tiles, strict=True)
    ]


def corrected(
    how: str, way: str, scores: np.ndarray, bank: np.ndarray, given: dict, size=(4, 5)
):
    """Corrected scores, one row per query, from tiles of `size`."""
    found = np.full((scores if way == "i2t" else scores.T).shape, np.nan)
    for tile in Corrected(
        how, {way: asked_of_split_and_bank(how, way, scores, bank, size)}, {way: given}
    ):
        found[np.ix_(tile.rows, tile.columns)] = tile.of(RankKey(way))
    return found if way == "i2t" else found.T


def expected(how: str, scores: np.ndarray, bank: np.ndarray, given: dict) -> np.ndarray:
    """By the loops; an inverted softmax as its logarithm over beta."""
    if how == "dual_softmax":
        return np.array(naive.dual_softmax(scores, **given))
    loops = np.array(getattr(naive, how)(scores, bank, **given))
    if how == "nnn":
        return loops
    is_raw = (loops == scores).all(1, keepdims=True)
    return np.where(is_raw, loops, np.log(np.where(is_raw, 1, loops)) / given["beta"])


@pytest.mark.parametrize("way", ["i2t", "t2i"])
@pytest.mark.parametrize("how", GRIDS)
def test_corrected_scores_are_those_of_the_loops(how, way):
    queries, items = (IMAGES, CAPTIONS) if way == "i2t" else (CAPTIONS, IMAGES)
    # some items are no hubs
    scores, bank = drawn(queries, items), drawn(3, items, seed=4)
    found = [
        corrected(how, way, scores, bank, GIVEN[how], size)
        for size in ((4, 5), (99, 99))
    ]
    np.testing.assert_allclose(
        found[0], expected(how, scores, bank, GIVEN[how]), rtol=1e-12
    )
    np.testing.assert_allclose(found[0], found[1], rtol=1e-14)
    if how == "qb_norm":  # both kinds of queries are there
        changed = (found[0] != scores).any(1)
        assert changed.any() and not changed.all()


def test_many_nearest_ones_are_all_of_a_small_bank():
    scores, bank = drawn(IMAGES, CAPTIONS), drawn(3, CAPTIONS, seed=1)
    found = corrected("nnn", "i2t", scores, bank, {"k": 64, "alpha": 1.0})
    np.testing.assert_allclose(
        found, scores - bank.mean(0, dtype=np.float64), rtol=1e-12
    )
    scores, bank = 1e4 * drawn(IMAGES, CAPTIONS), 1e4 * drawn(BANK, CAPTIONS, seed=1)
    found = corrected("inverted_softmax", "i2t", scores, bank, {"beta": 200.0})
    np.testing.assert_allclose(found, scores - bank.max(0), atol=1e-2)


@pytest.mark.parametrize("way", ["i2t", "t2i"])
@pytest.mark.parametrize(
    ("how", "given"),
    [("nnn", {"k": 3, "alpha": 0.0}), ("dual_softmax", {"beta": 1e-9})],
)
def test_without_strength_no_rank_changes(how, given, way):
    scores = drawn(IMAGES, CAPTIONS).round(1)  # with ties
    scores = scores if way == "i2t" else scores.T
    found = corrected(how, way, scores, drawn(BANK, scores.shape[1], seed=1), given)
    relevant = RELEVANCE.matrix if way == "i2t" else RELEVANCE.matrix.T
    # equal but for beta
    kept = found if how == "nnn" else (found * len(scores)).round(6)
    before, after = (
        ranks_of(each, relevant).values for each in (scores.astype(float), kept)
    )
    assert before.tolist() == after.tolist()


def test_qb_norm_leaves_queries_alone_whose_best_item_is_no_hub():
    scores = np.eye(3, dtype=np.float32)
    bank = np.array([[0.9, 0.2, 0.1], [0.8, 0.3, 0.7]], np.float32)  # item 0 is a hub
    found = corrected("qb_norm", "i2t", scores, bank, {"beta": 10.0})
    assert (found[1:] == scores[1:]).all() and (found[0] != scores[0]).all()
    # By hand: item 0 scores 0.9 with every query; item 1 is right for query 1.
    scores = np.array([[0.9, 0.1], [0.9, 0.8]], np.float32)
    bank = np.array([[0.9, 0.1], [0.9, 0.3]], np.float32)
    found = corrected("nnn", "i2t", scores, bank, {"k": 1, "alpha": 1.0})
    np.testing.assert_allclose(found, [[0.0, -0.2], [0.0, 0.5]], atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_banks_with_scores_that_are_not_finite_are_refused(bad):
    bank = drawn(BANK, CAPTIONS)
    bank[4, 7] = bad
    with pytest.raises(RefusedError, match="NaN or infinite"):
        corrected("nnn", "i2t", drawn(IMAGES, CAPTIONS), bank, GIVEN["nnn"])


# Parameters ---------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["i2t", "t2i"])
@pytest.mark.parametrize("how", GRIDS)
def test_validation_chooses_the_first_of_the_best(how, way):
    images, captions = 14, 28
    relevance = Relevance.of(np.arange(images), np.arange(captions) // 2)
    relevant = relevance.matrix if way == "i2t" else relevance.matrix.T
    for seed in range(2):
        hubs = drawn(relevant.shape[1], seed=seed + 10) / 2  # of each item
        scores = (
            drawn(*relevant.shape, seed=seed) / 4
            + hubs
            + relevant.astype(np.float32) / 4
        )
        bank = drawn(20, relevant.shape[1], seed=seed + 20) / 4 + hubs
        sums = []
        for given in GRIDS[how]:
            loops = expected(how, scores, bank, given)
            places = [set(np.flatnonzero(row)) for row in relevant]
            ranks = ranking.best_ranks(loops, places)
            sums.append(sum(ranking.recall_at(ranks, k) for k in (1, 5, 10)))
        found = chosen(
            how, *asked_of_split_and_bank(how, way, scores, bank, (7, 9)), relevance
        )
        assert found == GRIDS[how][int(np.argmax(sums))] and max(sums) > min(sums)


def test_every_correction_that_a_season_may_name_has_a_grid():
    assert set(get_args(Correction)) == GRIDS.keys()
    assert all(GRIDS.values())


# Cells --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A folder with a cell of each kind."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        enter(folder, patch)
        for cell in (scan(), two_branch(), scan("other", direction="i2t")):
            train_cell(cell)
    return folder


def scan(preset: str = "scan", **options: str) -> Cell:
    cell = cell_of("scan", folder=f"data/cells/{preset}", **options)
    return cell.model_copy(update={"preset": preset})


def two_branch() -> Cell:
    return cell_of("two_branch", folder="data/cells/two_branch")


@pytest.fixture
def here(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(trained, tmp_path / "work"))
    yield
    torch.use_deterministic_algorithms(False)


def bank_scores(cell, images: str, captions: str) -> np.ndarray:
    """(I, C) of the images of one split with the captions of another."""
    data, cpu = prepared_tables.read("tiny"), torch.device("cpu")
    trained = trained_cell(cell, data.sha256)
    model = trained.model(cpu)
    encodings = []
    for name, encode in ((images, model_scores.encode_images), (captions, None)):
        split = data.split(name)
        words = evaluate.model_on_split(trained, data, split, cpu).vocabulary
        given = split_inputs(data, split, cell, trained.takes, words, cpu)
        with torch.inference_mode():
            encodings.append((encode or model_scores.encode_captions)(model, given))
    return model_scores.score_pairs(model.similarity, *encodings).numpy()


@pytest.mark.parametrize(
    ("how", "kind"),
    [*zip(GRIDS, ("scan", "two_branch", "two_branch", "scan"), strict=True)],
)
def test_a_row_has_the_corrected_scores_of_its_preset(here, monkeypatch, how, kind):
    cell = scan() if kind == "scan" else two_branch()
    plain = scores_on_test(cell, monkeypatch=monkeypatch)
    row = fusion_of(cell, how=how)
    found = scores_on_test(row, cell, monkeypatch=monkeypatch)
    record = read_record(Path("data/cells/fused"))
    told = record.metrics["correction"]
    assert (record.status, record.options["how"], told["how"]) == ("ok", how, how)
    assert record.options["of"] == [kind] and record.trainings.keys() == {kind}
    data = prepared_tables.read("tiny")
    sizes = {name: data.split(name) for name in ("train", "test")}
    counts = {
        name: {"i2t": len(of.image_rows), "t2i": len(of.caption_rows)}
        for name, of in sizes.items()
    }
    assert told["bank"] == counts["test" if how == "dual_softmax" else "train"]
    banks = {
        "i2t": bank_scores(cell, "train", "test"),
        "t2i": bank_scores(cell, "test", "train").T,
    }
    for way in ("i2t", "t2i"):
        assert told[way] in GRIDS[how]
        loops = expected(how, plain[way], banks[way], told[way])
        np.testing.assert_allclose(found[way], loops, rtol=1e-4, atol=1e-5)
    file = Path("data/cells/fused/scores/ranks.npz")
    kept = [file.read_bytes(), json.dumps(record.metrics)]
    again = evaluated(row, cell)
    assert kept == [file.read_bytes(), json.dumps(again.metrics)]


def test_a_large_bank_is_drawn_by_the_seed(here, monkeypatch):
    cell = two_branch()
    monkeypatch.setattr(corrections, "BANK", 3)
    rows = [
        fusion_of(cell, how="nnn").model_copy(update={"seed": seed})
        for seed in (0, 0, 1)
    ]
    scores = [scores_on_test(row, cell, monkeypatch=monkeypatch)["t2i"] for row in rows]
    assert (scores[0] == scores[1]).all() and not (scores[0] == scores[2]).all()
    assert evaluated(rows[0], cell).metrics["correction"]["bank"] == {
        "i2t": 3,
        "t2i": 3,
    }


def test_parameters_are_chosen_without_a_test_score(here, monkeypatch):
    cell, asked_of = two_branch(), []
    original = corrections.chosen

    def chosen(how, split, bank, relevance):
        asked_of.append([(of.way, of.queries, of.items) for of in (split, bank)])
        return original(how, split, bank, relevance)

    monkeypatch.setattr(corrections, "chosen", chosen)
    evaluated(fusion_of(cell, how="qb_norm"), cell)
    data = prepared_tables.read("tiny")
    val, train = data.split("val"), data.split("train")
    sizes = [(len(of.image_rows), len(of.caption_rows)) for of in (val, train)]
    (images, captions), of_bank = sizes
    assert asked_of == [
        [("i2t", images, captions), ("i2t", of_bank[0], captions)],
        [("t2i", captions, images), ("t2i", of_bank[1], images)],
    ]


# Seasons ------------------------------------------------------------------------------


def corrected_season(**changes: object) -> Params:
    rows = {"nnn": [SCAN, FUSION], "dual_softmax": [TWO_BRANCH]}
    tried = season(
        presets=[SCAN, TWO_BRANCH, FUSION, "scan_i2t_lse"], corrections=rows, **changes
    )
    return resolve("try", with_dataset(tried, "folder", presets=["scan_*"]))


def test_a_row_is_run_where_its_preset_is_with_its_seeds():
    params = corrected_season(seeds_of={TWO_BRANCH: [5]})
    found = {key: of for key, of in params.fusions.items() if of.how in GRIDS}
    keys = [
        f"{d}-{of}_nnn-{s}"
        for d in ("drawn", "folder")
        for of in (SCAN, FUSION)
        for s in (0, 3)
    ]
    assert found.keys() == {*keys, f"drawn-{TWO_BRANCH}_dual_softmax-5"}
    of_fusion = found[f"folder-{FUSION}_nnn-3"]
    members = [
        params.cells[f"folder-{name}-3"].folder for name in (SCAN, "scan_i2t_lse")
    ]
    assert (of_fusion.how, of_fusion.members, of_fusion.parts) == (
        "nnn",
        members,
        ["", ""],
    )
    assert of_fusion.folder == f"data/cells/try/folder/{FUSION}_nnn/3"
    params = corrected_season()
    stage = pipeline.all_stages(params)[f"evaluate@drawn-{SCAN}_nnn-0"]
    assert list(stage.reads) == [params.cells[f"drawn-{SCAN}-0"].checkpoint]
    digests = stage.settings["seasons/try/cells.yaml"]
    assert digests == [f"cells.drawn-{SCAN}_nnn-0"]
    kinds = (params.fusions[f"drawn-{FUSION}{of}-0"] for of in ("", "_nnn"))
    assert len({pipeline.cell_digest(each) for each in kinds}) == 2


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("vsee", "score of its own"),
        ("cyclematch_adaptive", "or an average"),
        ("cca_phrases", "how: nnn"),
    ],
)
def test_what_cannot_be_corrected_is_refused(preset, expected):
    with pytest.raises(UserError) as error:
        resolve("try", season(corrections={"nnn": [preset]}))
    assert expected in error.value.expected and preset in str(error.value)


def test_a_row_of_other_test_queries_bears_a_flag(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    letters = []
    for how in GRIDS:
        metrics = {"correction": {"how": how, "i2t": {"beta": 5.0}}}
        row = standing("a", [outcome("a", seed, metrics=metrics) for seed in range(3)])
        letters.append([flag.letter for flag in flags.row_flags(board(row), row)])
        assert ("correction", "i2t beta=5.0") in result_tables._remarks(board(row), row)
    assert letters == [["4"] if how == "dual_softmax" else [] for how in GRIDS]


def test_in_a_report_a_row_has_the_name_and_the_trainings_of_its_preset(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    report_seasons.conclude_from_few(monkeypatch)
    report_seasons.draw_nothing(monkeypatch)
    rows = {"nnn": [SCAN], "dual_softmax": [SCAN]}
    tried = report_seasons.declared(played=(SCAN,)).model_copy(
        update={"corrections": rows}
    )
    params = resolve("try", tried)
    known = presets() | corrected_presets(rows, presets())
    monkeypatch.setattr(report_seasons, "presets", lambda: known)
    write_params(params, tried)
    for dataset in params.datasets:
        report_seasons.prepare(dataset)
    for cell in report_seasons.cells(params):
        report_seasons.play(cell, 0.3 + 0.1 * len(cell.preset))
    for of in read_boards(read_params()):
        plain, corrected, dual = (
            of.row(SCAN + end) for end in ("", "_nnn", "_dual_softmax")
        )
        assert (corrected.title, dual.title) == (
            f"{plain.title}, nearest-neighbour normalisation",
            f"{plain.title}, dual softmax",
        )
        assert (
            corrected.declared.fuse.of == [SCAN]
            and corrected.declared.network == "bottom_up"
        )
        trained = {
            comparisons.trainings_of(of, row) for row in (plain, corrected, dual)
        }
        assert trained == {frozenset({SCAN})}
        assert comparisons.compare(of, corrected, plain, "rsum") is not None


def test_exported_rows_of_corrections_are_no_trainings_of_their_own():
    names = [SCAN + end for end in ("", "_nnn", "_qb_norm")]
    assert [judged_results.trains(name) for name in names] == [True, False, False]
