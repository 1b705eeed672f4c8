"""Rows that were made elsewhere: `score` judges them as every row, and reports show them."""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refusal, refused
from report_seasons import CAPTIONS, IMAGES, OWNERS, README, draw_nothing, enter_played_season

from benchmark.__main__ import main
from benchmark.analysis import comparisons, ranking
from benchmark.analysis.boards import read_boards
from benchmark.commands import score as command
from benchmark.core.files import read_json, write_json
from benchmark.core.records import read_record
from benchmark.matching import brought_arrays
from benchmark.report import __main__ as report
from benchmark.season.parameter_files import read_params
from benchmark.season.parameters import Brought

IMAGE_IDS = [f"i{number}" for number in range(IMAGES)]
CAPTION_IDS = [f"c{number}" for number in range(CAPTIONS)]


@pytest.fixture
def season(tmp_path_factory, tmp_path, monkeypatch):
    params = enter_played_season(tmp_path_factory, tmp_path / "played", monkeypatch)
    for dataset in params.datasets:
        card = Path(f"data/prepared/{dataset}/card.json")
        write_json(card, read_json(card) | {"ways": ["i2t", "t2i"], "folds": 1})
    draw_nothing(monkeypatch)
    return params


def embeddings(noise: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Captions (C, 5) near their images (I, 5)."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(IMAGES, 5)).astype(np.float32)
    return images, (images[OWNERS] + noise * rng.normal(size=(CAPTIONS, 5))).astype(np.float32)


def naive_ranks(scores_QG: np.ndarray, relevant_QG: np.ndarray) -> list[int]:
    """How many irrelevant items score at least as much as the best relevant one."""
    ranks = []
    for scores, relevant in zip(scores_QG, relevant_QG, strict=True):
        best = max(score for score, is_one in zip(scores, relevant, strict=True) if is_one)
        others = [s for s, is_one in zip(scores, relevant, strict=True) if not is_one]
        ranks.append(sum(score >= best for score in others))
    return ranks


def score(*words: object, name: str = "clip") -> int:
    return main(["score", "--dataset", "open", "--name", name, *map(str, words)])


def record(name: str = "clip", seed: int = 0):
    return read_record(Path(f"results/try/open/{name}/{seed}"))


def save_pair(images: np.ndarray, captions: np.ndarray) -> tuple[str, ...]:
    np.save("a.npy", images)
    np.save("b.npy", captions)
    return ("--images", "a.npy", "--captions", "b.npy")


def board():
    return next(b for b in read_boards(read_params("try")) if b.dataset == "open")


@pytest.mark.parametrize("compare", ["cosine", "dot"])
def test_embeddings_are_ranked_as_a_loop_over_their_products_does(season, compare):
    images, captions = embeddings()
    assert score(*save_pair(images, captions), "--compare", compare) == 0
    scores = np.array([[float(np.dot(a, b)) for b in captions] for a in images])
    if compare == "cosine":
        scores /= np.outer([np.sqrt(a @ a) for a in images], [np.sqrt(b @ b) for b in captions])
    relevant = np.array([[OWNERS[c] == i for c in range(CAPTIONS)] for i in range(IMAGES)])
    ranks = pd.read_parquet("results/try/open/clip/0/scores/ranks.parquet")
    i2t = ranks.loc[ranks["direction"] == "i2t", "rank"].tolist()
    t2i = ranks.loc[ranks["direction"] == "t2i", "rank"].tolist()
    assert i2t == naive_ranks(scores, relevant) and t2i == naive_ranks(scores.T, relevant.T)
    assert 0 < sum(rank == 0 for rank in t2i) < CAPTIONS
    hits = 100 * np.mean([rank < 1 for rank in t2i])
    assert record().metrics["t2i_r1"] == pytest.approx(hits)


def test_every_kind_of_file_gives_the_same_record(season):
    images, captions = embeddings()
    score(*save_pair(images, captions))
    expected = record().metrics
    np.savez("a.npz", ids=IMAGE_IDS[::-1], vectors=images[::-1])
    pq.write_table(pa.table({"id": CAPTION_IDS, "embedding": list(captions)}), "b.parquet")
    assert score("--images", "a.npz", "--captions", "b.parquet") == 0
    assert record().metrics == expected
    write_safetensors("a.safetensors", images[::-1])
    Path("a_ids.txt").write_text("\n".join(IMAGE_IDS[::-1]) + "\n")
    columns = {"caption_id": CAPTION_IDS} | {f"x{n}": captions[:, n] for n in range(5)}
    pd.DataFrame(columns).sample(frac=1, random_state=0).to_parquet("b.parquet")
    assert score("--images", "a.safetensors", "--captions", "b.parquet") == 0
    assert record().metrics == expected


def write_safetensors(path: str, array: np.ndarray, **facts: object) -> None:
    tensor = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [0, array.nbytes]}
    header = json.dumps({"__metadata__": {"by": "me"}, "x": tensor | facts}).encode()
    content = len(header).to_bytes(8, "little") + header + np.ascontiguousarray(array).tobytes()
    Path(path).write_bytes(content)


def test_half_precision_of_safetensors_is_the_upper_half_of_single_precision(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = np.array([[1.0, -2.5], [0.15625, 3.0]], np.float32)
    upper = (values.view(np.uint32) >> 16).astype(np.uint16)
    write_safetensors("x.safetensors", upper, dtype="BF16")
    rows = brought_arrays.read_rows(Path("x.safetensors"))
    assert np.array_equal(rows.values, values) and rows.values.dtype == np.float32


def test_a_matrix_has_rows_and_columns_by_id_or_in_order(season):
    images, captions = embeddings()
    matrix = images @ captions.T
    score(*save_pair(images, captions), "--compare", "dot")
    np.save("m.npy", matrix)
    score("--matrix", "m.npy", name="ordered")
    mixed = matrix[::-1][:, ::-1]
    np.savez("m.npz", image_ids=IMAGE_IDS[::-1], caption_ids=CAPTION_IDS[::-1], scores=mixed)
    score("--matrix", "m.npz", name="named")
    ranks = [record(name).metrics["rsum"] for name in ("clip", "ordered", "named")]
    assert ranks[0] == ranks[1] == ranks[2]
    assert record("ordered").metrics["overlap_s"] == record("named").metrics["overlap_s"]


def test_a_row_that_was_brought_along_is_an_ordinary_one(season):
    score(*save_pair(*embeddings(1.0)))
    score(*save_pair(*embeddings(2.0)), "--seed", "1")
    standing = board().standing("clip")
    assert [outcome.record.seed for outcome in standing.outcomes] == [0, 1]
    assert len(ranking.rank_letters(board().retrieval)) == 5
    low, high = comparisons.interval(board(), standing, "rsum")
    assert low < standing.mean("rsum") < high
    assert main(["report"]) == 0
    text = README.read_text()
    assert "clip (brought along)" in text
    page = Path("reports/try/datasets/open.md").read_text()
    assert "embeddings brought along, not trained here: a.npy, sha256" in page


def test_a_season_that_is_resolved_anew_keeps_the_row(season):
    score(*save_pair(*embeddings()))
    from_file = Path("seasons/try/brought/open-clip-0.yaml").read_text()
    params = read_params("try")
    assert list(params.brought) == ["open-clip-0"] and "open-clip-0" not in params.cells
    assert Path(params.brought["open-clip-0"].folder, "record.json").is_file()
    assert "preset: clip" in from_file


@pytest.mark.parametrize("column", ["rank", "position"])
def test_ranks_alone_make_a_row_without_scores(season, column):
    rng = np.random.default_rng(1)
    rows = [("i2t", name, int(rng.integers(0, 9))) for name in IMAGE_IDS]
    rows += [("t2i", name, int(rng.integers(0, 6))) for name in CAPTION_IDS]
    table = pd.DataFrame(rows, columns=["direction", "query", "rank"])
    expected = {
        f"{way}_r{k}": 100 * (table.loc[table["direction"] == way, "rank"] < k).mean()
        for way in ("i2t", "t2i")
        for k in (1, 5, 10)
    }
    if column == "position":
        table["position"] = table.pop("rank") + 1
    table.sample(frac=1, random_state=0).to_csv("r.csv", index=False)
    assert score("--ranks", "r.csv") == 0
    metrics = record().metrics
    assert {name: metrics[name] for name in expected} == pytest.approx(expected)
    assert metrics["rsum"] == pytest.approx(sum(expected.values()))
    assert "overlap_s" not in metrics
    assert main(["report"]) == 0
    assert "clip (brought along)" in README.read_text()
    assert set(report.tables_of([board()])["open/cost"].rows[0]) != {"-"}


def test_a_leaderboard_of_ranks_alone_can_be_reported(season, monkeypatch):
    """As the only row with a result, it is the best, and there is nothing to look at."""
    table = [("i2t", name, 0) for name in IMAGE_IDS] + [("t2i", name, 0) for name in CAPTION_IDS]
    pd.DataFrame(table, columns=["direction", "query", "rank"]).to_csv("r.csv", index=False)
    score("--ranks", "r.csv")
    params = read_params("try")
    only = params.model_copy(update={"cells": {}, "fusions": {}})
    monkeypatch.setattr(report, "read_params", lambda season: only)
    assert main(["report"]) == 0
    assert "only ranks were brought along" in Path("reports/try/datasets/open.md").read_text()


def test_items_are_written_in_the_order_of_the_split(season, capsys):
    assert main(["score", "--dataset", "open", "--items", "todo"]) == 0
    images, captions = pd.read_csv("todo/images.csv"), pd.read_csv("todo/captions.csv")
    assert images["image_id"].tolist() == IMAGE_IDS
    assert captions["caption_id"].tolist() == CAPTION_IDS
    assert captions["image_id"].tolist() == [f"i{owner}" for owner in OWNERS]
    assert all(Path(path).is_file() for path in images["path"])


def test_what_does_not_fit_is_refused(season):
    images, captions = embeddings()
    np.save("short.npy", captions[:-1])
    np.save("wide.npy", np.ones((CAPTIONS, 6), np.float32))
    np.save("nan.npy", np.where(np.arange(CAPTIONS)[:, None] == 3, np.nan, captions))
    np.save("zero.npy", captions * (np.arange(CAPTIONS)[:, None] != 3))
    np.save("turned.npy", captions.T)
    np.savez("strange.npz", ids=[*CAPTION_IDS[:-1], "c99"], x=captions)
    np.savez("twice.npz", ids=[*CAPTION_IDS[:-1], "c0"], x=captions)
    np.savez("two.npz", x=captions, y=captions)
    np.save("objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    Path("cut.npy").write_bytes(Path("wide.npy").read_bytes()[:-9])
    Path("text.parquet").write_text("no table")
    np.save("a.npy", images)
    reasons = {
        "short.npy": "expected the 24 captions of test, found 23",
        "wide.npy": "expected vectors of 5 numbers, as of the images, found 6",
        "nan.npy": "NaN or infinity in row 3 (1 such rows)",
        "zero.npy": "zeros alone for 'c3', item 3 of test (1 such vectors)",
        "turned.npy": "expected one row for each of 24 items, found one column for each",
        "strange.npz": "found none for 'c23' (1 such in all)",
        "twice.npz": "expected every id once, found 'c0' twice",
        "two.npz": "expected one array of numbers, found x, y",
        "objects.npy": "never unpickled",
        "cut.npy": "expected a .npy file",
        "text.parquet": "expected a .parquet file",
        "none.npy": "expected a file, found nothing",
        "a.pt": "expected one of .npy, .npz, .parquet, .safetensors, found .pt",
    }
    for file, reason in reasons.items():
        with refused(kind=Exception) as caught:
            judge("--images", "a.npy", "--captions", file)
        assert str(file) in str(caught.value) and reason in str(caught.value), caught.value
    assert not Path("results/try/open/clip").exists()


def judge(*words: str) -> None:
    """`score` without the line that the command line makes of an error."""
    raise refusal(command, "--dataset", "open", "--name", "clip", *words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--images with --captions, or --matrix, or --ranks, found none of them"),
        (("--images", "a.npy"), "found --images alone; add --captions FILE"),
        (("--captions", "b.npy"), "found --captions alone; add --images FILE"),
        (("--matrix", "a.npy", "--ranks", "r.csv"), "found several of them"),
    ],
)
def test_one_kind_of_file_is_needed(season, capsys, words, message):
    assert score(*words) == 2
    assert message in capsys.readouterr().err


def test_files_in_each_others_place_are_told(season, capsys):
    images, captions = embeddings()
    assert score(*save_pair(captions, images)) == 2
    told = capsys.readouterr().err
    assert "found captions in a.npy, images in b.npy" in told
    assert "swap them: --images b.npy --captions a.npy" in told
    np.savez("a.npz", ids=CAPTION_IDS, x=captions)
    np.savez("b.npz", ids=IMAGE_IDS, x=images)
    assert score("--images", "a.npz", "--captions", "b.npz") == 2
    assert "swap them: --images b.npz --captions a.npz" in capsys.readouterr().err
    np.save("m.npy", captions @ images.T)
    assert score("--matrix", "m.npy") == 2
    assert "12 images (rows) by 24 captions (columns), found captions by images" in (
        capsys.readouterr().err
    )


def test_rows_in_another_order_are_near_chance(season, capsys):
    images, captions = embeddings(0.1)
    assert score(*save_pair(images, captions)) == 0
    told = capsys.readouterr().out
    assert "near chance" not in told and "in the place of" not in told
    mixed = np.random.default_rng(3).permutation(CAPTIONS)
    assert score(*save_pair(images, captions[mixed])) == 0
    told = capsys.readouterr().out
    assert "embeddings brought along, in the place of the row of this name and seed" in told
    assert "near chance: rsum " in told and "less than 3 times the 266.7 of random" in told
    assert "check that row i belongs to item i" in told and "or give ids" in told


@pytest.mark.parametrize("seed", ["-1", "2147483648"])
def test_a_seed_is_one_that_cells_may_have(season, capsys, seed):
    assert score(*save_pair(*embeddings()), "--seed", seed) == 2
    assert f"--seed: expected 0 to 2147483647, found {seed}" in capsys.readouterr().err


def test_a_row_needs_a_name(season, capsys):
    assert main(["score", "--dataset", "open", *save_pair(*embeddings())]) == 2
    assert "--name: expected what the row is called, found nothing" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["scan_t2i_avg", "../up", "a b", "", "claims"])
def test_the_name_of_a_row_is_a_name_that_no_preset_has(season, capsys, name):
    assert score(*save_pair(*embeddings()), name=name) == 2
    assert "--name" in capsys.readouterr().err
    assert not Path("seasons/try/brought").exists()


def test_a_row_has_a_key_of_its_own(season, capsys):
    """Row b-c on a has the key of row c on a-b."""
    taken = Brought(dataset="open-two", preset="mine", seed=0, folder="results/try/open-two/mine/0")
    params = season.model_copy(update={"brought": {taken.key: taken}})
    parser = argparse.ArgumentParser()
    command.configure(parser)
    words = ["--dataset", "open", "--name", "two-mine"]
    with refused("--name", "a key of its own with open", "open-two-mine-0, the key of mine"):
        command._row(params, parser.parse_args(words))
    assert command._row(season, parser.parse_args(words)).key == taken.key


def test_a_row_may_not_name_a_foreign_folder(season):
    score(*save_pair(*embeddings()))
    path = Path("seasons/try/brought/open-clip-0.yaml")
    path.write_text(path.read_text().replace("results/try/open/clip/0", "results/try/open/x/0"))
    with refused("brought/open-clip-0.yaml: folder", expected="results/try/open/clip/0"):
        read_params("try")


def test_ranks_of_other_queries_are_refused(season, capsys):
    rows = [("i2t", name, 0) for name in IMAGE_IDS] + [("t2i", name, 0) for name in CAPTION_IDS]
    for change, message in (
        (rows[:-1], "t2i: expected one row for each of the 24 test queries"),
        ([*rows[:-1], ("t2i", "c23", 12)], "whole ranks from 0 below 12"),
        ([*rows[:-1], ("t2i", "c23", 0.5)], "whole ranks"),
        ([*rows[:-1], ("t2i", "c23", "x")], "whole ranks"),
    ):
        pd.DataFrame(change, columns=["direction", "query", "rank"]).to_csv("r.csv", index=False)
        assert score("--ranks", "r.csv") == 2
        assert message in capsys.readouterr().err
