"""External rows: `score` judges them as every row, and reports show them."""

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
from benchmark.boards import comparisons
from benchmark.boards.boards import read_boards
from benchmark.commands import score as command
from benchmark.core.files import read_json, write_json
from benchmark.core.records import read_record
from benchmark.data.results import read_scores
from benchmark.scoring import brought_arrays
from benchmark.season.parameter_files import read_params

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


def test_embeddings_are_ranked_as_a_loop_over_their_cosines_does(season):
    images, captions = embeddings()
    assert score(*save_pair(images, captions)) == 0
    scores = np.array([[float(np.dot(a, b)) for b in captions] for a in images])
    scores /= np.outer([np.sqrt(a @ a) for a in images], [np.sqrt(b @ b) for b in captions])
    relevant = np.array([[OWNERS[c] == i for c in range(CAPTIONS)] for i in range(IMAGES)])
    kept = read_scores(Path("results/try/open/clip/0"))
    assert kept.best("i2t").tolist() == naive_ranks(scores, relevant)
    t2i = kept.best("t2i").tolist()
    assert t2i == naive_ranks(scores.T, relevant.T) and 0 < t2i.count(0) < CAPTIONS
    assert record().metrics["t2i_r1"] == pytest.approx(100 * t2i.count(0) / CAPTIONS)


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


def test_half_precision_of_safetensors_is_the_upper_half_of_single_precision(tmp_path):
    values = np.array([[1.0, -2.5], [0.15625, 3.0]], np.float32)
    upper = (values.view(np.uint32) >> 16).astype(np.uint16)
    write_safetensors(str(tmp_path / "x.safetensors"), upper, dtype="BF16")
    assert np.array_equal(brought_arrays.read_rows(tmp_path / "x.safetensors").values, values)


def test_a_matrix_has_rows_and_columns_by_id_or_in_order(season):
    images, captions = embeddings()
    matrix = images @ captions.T
    np.save("m.npy", matrix)
    score("--matrix", "m.npy", name="ordered")
    mixed = matrix[::-1][:, ::-1]
    np.savez("m.npz", image_ids=IMAGE_IDS[::-1], caption_ids=CAPTION_IDS[::-1], scores=mixed)
    score("--matrix", "m.npz", name="named")
    assert record("ordered").metrics == record("named").metrics
    hits = [int(OWNERS[np.argmax(row)] == image) for image, row in enumerate(matrix)]
    assert record("named").metrics["i2t_r1"] == pytest.approx(100 * np.mean(hits))


def test_an_external_row_is_an_ordinary_one(season, capsys):
    score(*save_pair(*embeddings(1.0)))
    score(*save_pair(*embeddings(2.0)), "--seed", "1")
    params = read_params("try")
    assert {key for key in params.brought} == {"open-clip-0", "open-clip-1"}
    board = next(board for board in read_boards(params) if board.dataset == "open")
    row = board.row("clip")
    assert [outcome.record.seed for outcome in row.outcomes] == [0, 1]
    assert len(comparisons.rank_letters(board.retrieval)) == 5
    low, high = comparisons.interval(board, row, "rsum")
    assert low < row.mean("rsum") < high
    assert main(["report"]) == 0
    assert "clip (external)" in README.read_text()
    page = Path("reports/try/datasets/open.md").read_text()
    assert "external embeddings, not trained here: a.npy, sha256" in page


def test_ranks_alone_make_a_row_without_scores(season):
    rng = np.random.default_rng(1)
    rows = [("i2t", name, int(rng.integers(0, 9))) for name in IMAGE_IDS]
    rows += [("t2i", name, int(rng.integers(0, 6))) for name in CAPTION_IDS]
    table = pd.DataFrame(rows, columns=["direction", "query", "rank"])
    expected = {
        f"{way}_r{k}": 100 * (table.loc[table["direction"] == way, "rank"] < k).mean()
        for way in ("i2t", "t2i")
        for k in (1, 5, 10)
    }
    table.sample(frac=1, random_state=0).to_csv("r.csv", index=False)
    assert score("--ranks", "r.csv") == 0
    metrics = record().metrics
    assert {name: metrics[name] for name in expected} == pytest.approx(expected)
    assert metrics["rsum"] == pytest.approx(sum(expected.values()))
    assert "overlap_s" not in metrics
    assert main(["report"]) == 0 and "clip (external)" in README.read_text()


def test_items_are_written_in_the_order_of_the_split(season):
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
    np.savez("strange.npz", ids=[*CAPTION_IDS[:-1], "c99"], x=captions)
    np.savez("twice.npz", ids=[*CAPTION_IDS[:-1], "c0"], x=captions)
    np.savez("two.npz", x=captions, y=captions)
    np.save("objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    Path("cut.npy").write_bytes(Path("wide.npy").read_bytes()[:-9])
    Path("text.parquet").write_text("no table")
    np.save("a.npy", images)
    reasons = {
        "short.npy": "expected the 24 captions of test, found 23",
        "a.npy": "expected the 24 captions of test, found 12",
        "wide.npy": "expected vectors of 5 numbers, as of the images, found 6",
        "nan.npy": "NaN or infinity in row 3 (1 such rows)",
        "zero.npy": "zeros alone for 'c3', item 3 of test (1 such vectors)",
        "strange.npz": "found none for 'c23' (1 such in all)",
        "twice.npz": "expected every id once, found 'c0' twice",
        "two.npz": "expected one array of numbers, found x, y",
        "objects.npy": "never unpickled",
        "cut.npy": "expected a .npy file",
        "text.parquet": "expected a .parquet file",
        "none.npy": "expected a .npy file, found nothing",
        "a.pt": "expected one of .npy, .npz, .parquet, .safetensors, found .pt",
    }
    for file, reason in reasons.items():
        with refused(kind=Exception) as caught:
            raise refusal(
                command, "--dataset", "open", "--name", "x", "--images", "a.npy", "--captions", file
            )
        assert str(file) in str(caught.value) and reason in str(caught.value), caught.value
    assert not Path("results/try/open/x").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--images with --captions, or --matrix, or --ranks, found none of them"),
        (("--images", "a.npy"), "found 1 of them"),
        (("--matrix", "a.npy", "--ranks", "r.csv"), "found several kinds"),
        (("--seed", "-1", "--ranks", "r.csv"), "--name and --seed: seed: expected greater"),
        (("--name", "scan_t2i_avg", "--ranks", "r.csv"), "a name that no preset"),
        (("--name", "../up", "--ranks", "r.csv"), "--name and --seed: preset"),
        (("--name", "claims", "--ranks", "r.csv"), "a name that no preset"),
    ],
)
def test_one_kind_of_file_and_a_name_of_its_own_are_needed(season, capsys, words, message):
    assert score(*words) == 2
    assert message in capsys.readouterr().err
    assert not Path("seasons/try/external.yaml").exists()


def test_files_in_each_others_place_and_turned_ones_are_told(season, capsys):
    images, captions = embeddings()
    assert score(*save_pair(captions, images)) == 2
    told = capsys.readouterr().err
    assert "found captions in a.npy, images in b.npy" in told
    assert "swap them: --images b.npy --captions a.npy" in told
    np.savez("a.npz", ids=CAPTION_IDS, x=captions)
    np.savez("b.npz", ids=IMAGE_IDS, x=images)
    assert score("--images", "a.npz", "--captions", "b.npz") == 2
    assert "swap them: --images b.npz --captions a.npz" in capsys.readouterr().err
    assert score(*save_pair(images.T, captions)) == 2
    told = capsys.readouterr().err
    assert "a.npy: expected one row for each of 12 items, found one column for each; trans" in told
    np.savez("m.npz", image_ids=IMAGE_IDS, caption_ids=CAPTION_IDS, scores=captions @ images.T)
    np.save("m.npy", captions @ images.T)
    for name in ("m.npy", "m.npz"):
        assert score("--matrix", name) == 2
        told = capsys.readouterr().err
        assert "12 images (rows) by 24 captions (columns), found captions by images" in told
    assert not Path("results/try/open/clip").exists()


def test_a_doubt_fits_what_was_seen(season, capsys):
    images, captions = embeddings(0.1)
    assert score(*save_pair(images, captions)) == 0
    told = capsys.readouterr().out
    assert "chance" not in told and "in the place of" not in told
    mixed = np.random.default_rng(3).permutation(CAPTIONS)
    assert score(*save_pair(images, captions[mixed])) == 0
    told = capsys.readouterr().out
    assert "external embeddings, in the place of the row of this name and seed" in told
    assert "near chance: rsum " in told and "check the order of the rows, or give ids" in told
    np.save("m.npy", np.linalg.norm(images[:, None] - captions, axis=2))
    assert score("--matrix", "m.npy") == 0
    told = capsys.readouterr().out
    assert "far below chance: rsum 0.0, random 266.7; are these distances?" in told
    assert score(*save_pair(images, -captions)) == 0
    assert "far below chance" in (told := capsys.readouterr().out) and "negated?" in told
    rows = [("i2t", name, 1) for name in IMAGE_IDS] + [("t2i", name, 1) for name in CAPTION_IDS]
    pd.DataFrame(rows, columns=["direction", "query", "rank"]).to_csv("r.csv", index=False)
    assert score("--ranks", "r.csv") == 0
    told = capsys.readouterr().out
    assert "no rank is 0: are these positions, from 1?" in told


def test_ranks_of_other_queries_are_refused(season, capsys):
    rows = [("i2t", name, 0) for name in IMAGE_IDS] + [("t2i", name, 0) for name in CAPTION_IDS]
    for change, message in (
        (rows[:-1], "t2i: expected one row for each of the 24 test queries"),
        ([*rows, rows[-1]], "t2i: expected one row for each of the 24 test queries, found 25"),
        ([*rows[:-1], ("t2i", "c23", 12)], "from 0 below 12, found 12 for 'c23' (1 such)"),
        ([*rows[:-1], ("t2i", "c23", 0.5)], "whole ranks from 0 below 12, found 0.5 for 'c23'"),
        ([*rows[:-1], ("t2i", "c23", "x")], "found x for 'c23'"),
        ([*rows[:-1], ("t2i", "c23", "")], "found nothing for 'c23'"),
    ):
        pd.DataFrame(change, columns=["direction", "query", "rank"]).to_csv("r.csv", index=False)
        assert score("--ranks", "r.csv") == 2
        assert message in capsys.readouterr().err
