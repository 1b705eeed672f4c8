"""External rows: `score` judges them as every row, and reports show them."""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from oracles import corrections as naive
from oracles import ranking
from refusals import refusal, refused
from report_seasons import CAPTIONS, IMAGES, OWNERS, draw_nothing, enter_played_season

from benchmark.__main__ import main
from benchmark.commands import score as command
from benchmark.commands.external_embeddings import of_embeddings
from benchmark.commands.external_matrices import of_matrix
from benchmark.commands.external_ranks import of_ranks
from benchmark.core import files
from benchmark.core.files import read_json, write_json
from benchmark.data import results
from benchmark.data.prepared_tables import JUDGED
from benchmark.data.rank_keys import I2T
from benchmark.data.results import CellResult

IMAGE_IDS = [f"i{number}" for number in range(IMAGES)]
CAPTION_IDS = [f"c{number}" for number in range(CAPTIONS)]


@pytest.fixture
def season(tmp_path_factory, tmp_path, monkeypatch):
    params = enter_played_season(tmp_path_factory, tmp_path / "played", monkeypatch)
    for dataset in params.datasets:
        card = Path(f"data/cards/{dataset}/card.json")
        write_json(card, read_json(card) | {"ways": ["i2t", "t2i"], "folds": 1})
    draw_nothing(monkeypatch)
    return params


def embeddings(noise: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Captions (C, 5) near their images (I, 5)."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(IMAGES, 5)).astype(np.float32)
    return images, (images[OWNERS] + noise * rng.normal(size=(CAPTIONS, 5))).astype(
        np.float32
    )


def ranked(scores_QG: np.ndarray, relevant_QG: np.ndarray) -> list[int]:
    return ranking.ranks(scores_QG, [np.flatnonzero(row) for row in relevant_QG])


def score(*words: object, name: str = "clip") -> int:
    return main(["score", "--dataset", "open", "--name", name, *map(str, words)])


def record(name: str = "clip", seed: int = 0):
    return result(name, seed).record


def result(name: str = "clip", seed: int = 0) -> CellResult:
    return results.read_kept("try", "open")[f"{name}/{seed}"]


def save_pair(images: np.ndarray, captions: np.ndarray) -> tuple[str, ...]:
    np.save("a.npy", images)
    np.save("b.npy", captions)
    return ("--images", "a.npy", "--captions", "b.npy")


def test_embeddings_are_ranked_as_a_loop_over_their_cosines_does(season):
    images, captions = embeddings()
    assert score(*save_pair(images, captions)) == 0
    scores = np.array([[float(np.dot(a, b)) for b in captions] for a in images])
    scores /= np.outer(
        [np.sqrt(a @ a) for a in images], [np.sqrt(b @ b) for b in captions]
    )
    relevant = np.array(
        [[OWNERS[c] == i for c in range(CAPTIONS)] for i in range(IMAGES)]
    )
    kept = result().scores
    assert kept.best("i2t").tolist() == ranked(scores, relevant)
    t2i = kept.best("t2i").tolist()
    assert t2i == ranked(scores.T, relevant.T) and 0 < t2i.count(0) < CAPTIONS
    assert record().metrics["t2i_r1"] == pytest.approx(100 * t2i.count(0) / CAPTIONS)


def test_other_shapes_of_the_same_vectors_are_told(season, capsys):
    images, captions = embeddings()
    score(*save_pair(images, captions))
    expected, each = record().metrics, CAPTIONS // IMAGES
    assert OWNERS.tolist() == np.repeat(np.arange(IMAGES), each).tolist()
    for pair, told in (
        (
            (images, captions.reshape(IMAGES, each, -1)),
            f"b.npy: (12, {each}, 5) are the {each} captions of each image, in their order",
        ),
        (
            (images[OWNERS], captions),
            "a.npy: one row per caption; the equal ones of an image",
        ),
    ):
        capsys.readouterr()
        assert score(*save_pair(*pair)) == 0
        assert told in capsys.readouterr().out and record().metrics == expected
    for pair in ((images[:, None], captions), (images, np.stack([captions] * 5, 1))):
        assert score(*save_pair(*pair)) == 2
        assert "save one vector per item (" in capsys.readouterr().err


def test_a_matrix_has_rows_and_columns_by_id_or_in_order(season):
    images, captions = embeddings()
    matrix = images @ captions.T
    np.save("m.npy", matrix)
    score("--matrix", "m.npy", name="ordered")
    mixed = matrix[::-1][:, ::-1]
    np.savez(
        "m.npz", image_ids=IMAGE_IDS[::-1], caption_ids=CAPTION_IDS[::-1], scores=mixed
    )
    score("--matrix", "m.npz", name="named")
    assert record("ordered").metrics == record("named").metrics
    hits = [int(OWNERS[np.argmax(row)] == image) for image, row in enumerate(matrix)]
    assert record("named").metrics["i2t_r1"] == pytest.approx(100 * np.mean(hits))


def test_each_direction_may_have_a_matrix_of_its_own(season):
    images, captions = embeddings()
    first, second = (
        images @ captions.T,
        -np.linalg.norm(images[:, None] - captions, axis=2),
    )
    for matrix, name in ((first, "first"), (second, "second")):
        np.save("m.npy", matrix)
        score("--matrix", "m.npy", name=name)
    np.savez("m.npz", score_matrix_i2t=first, score_matrix_t2i=second.T)
    score("--matrix", "m.npz", name="both")
    both = record("both").metrics
    for way, name in (("i2t", "first"), ("t2i", "second")):
        assert both[f"{way}_r1"] == record(name).metrics[f"{way}_r1"]
    assert record("first").metrics["t2i_r1"] != both["t2i_r1"]


@pytest.fixture
def data() -> SimpleNamespace:
    """A dataset of three test images with a caption each."""
    rows = np.arange(3)
    split = SimpleNamespace(
        image_rows=rows,
        caption_rows=rows,
        group_of_image=rows,
        group_of_caption=rows,
        image_of_caption=rows,
    )
    return SimpleNamespace(
        judged=pd.DataFrame(columns=JUDGED),
        split=lambda name: split,
        images=pd.DataFrame({"image_id": list("abc"), "file": list("abc")}),
        captions=pd.DataFrame({"caption_id": list("xyz"), "text": list("xyz")}),
        card={"ways": ["i2t", "t2i"], "folds": 1},
    )


def test_the_same_vectors_for_images_and_captions_are_refused(tmp_path, data):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(3, 4)))
    with refused(
        "--images, --captions", found="the same numbers twice", do="the file of the cap"
    ):
        of_embeddings(tmp_path / "a.npy", tmp_path / "a.npy", data)


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1e200])
def test_lengths_of_vectors_do_not_matter(tmp_path, data, scale):
    vectors = np.random.default_rng(0).normal(size=(6, 4))
    np.save(tmp_path / "a.npy", vectors[:3] * scale)
    np.save(tmp_path / "b.npy", vectors[3:] / scale)
    judged = of_embeddings(tmp_path / "a.npy", tmp_path / "b.npy", data)
    scores = (
        vectors[:3]
        @ (vectors[3:] / np.linalg.norm(vectors[3:], axis=1, keepdims=True)).T
    )
    expected = [(row >= row[image]).sum() - 1 for image, row in enumerate(scores)]
    assert judged.result.scores.ranks[I2T].best.tolist() == expected


def test_a_list_of_pairs_is_no_matrix(tmp_path, data):
    rows = [f"{image},{caption},0.5" for image in "abc" for caption in "xyz"]
    (tmp_path / "m.csv").write_text("\n".join(["image_id,caption_id,score", *rows]))
    with refused("m.csv", "scores (images, captions)", "a list of pairs", "pivot"):
        of_matrix(tmp_path / "m.csv", data)


def test_ranks_of_a_direction_that_is_not_asked_are_told(tmp_path, data):
    rows = [
        f"{way},{query},0"
        for way, names in (("i2t", "abc"), ("t2i", "xyz"))
        for query in names
    ]
    (tmp_path / "r.csv").write_text("\n".join(["direction,query,rank", *rows]))
    data.card["ways"] = ["t2i"]
    notes = of_ranks(tmp_path / "r.csv", data).notes
    assert notes == [
        f"{tmp_path / 'r.csv'}: not used: 3 ranks i2t, which this dataset does not ask",
        f"{tmp_path / 'r.csv'}: ranks are read from 0, the best item first",
    ]


def test_the_axes_of_a_square_matrix_are_told(tmp_path, data):
    # each image's best is the next one's caption
    matrix = np.eye(3, k=1) + np.eye(3) / 2
    np.save(tmp_path / "m.npy", matrix)
    judged = of_matrix(tmp_path / "m.npy", data)
    assert judged.notes == [
        f"{tmp_path / 'm.npy'}: i2t: rows are taken for images, columns for captions"
    ]
    assert judged.result.scores.ranks[I2T].best.tolist() == [1, 1, 0]
    np.savez(
        tmp_path / "m.npz", s=matrix, image_ids=list("abc"), caption_ids=list("xyz")
    )
    assert of_matrix(tmp_path / "m.npz", data).notes == []


def test_scores_of_double_precision_do_not_tie(season):
    matrix = np.round(
        np.matmul(*embeddings(), axes=[(0, 1), (1, 0), (0, 1)]).astype(float), 2
    )
    for offset, name in ((0, "near"), (1e9, "far")):
        np.save("m.npy", matrix + offset)
        score("--matrix", "m.npy", name=name)
    ranks = [result(name).scores for name in ("near", "far")]
    assert ranks[0].best("t2i").tolist() == ranks[1].best("t2i").tolist()


def test_ties_and_twins_are_told(season, capsys):
    card = Path("data/cards/open/card.json")
    write_json(card, read_json(card) | {"twins": {"images": 3, "captions": 5}})
    images, captions = embeddings(0.01)
    images[1], captions[2:4] = images[0], captions[0]
    assert score(*save_pair(images, captions)) == 0
    told = capsys.readouterr().out
    assert "twins in test: 3 images, 5 captions" in told
    assert "ties: i2t R@1 83.33 as misses, 100.00 as hits" in told


def test_queries_that_were_not_found_leave_out_what_is_not_known(season, capsys):
    rows = [("i2t", name, 0) for name in IMAGE_IDS] + [
        ("t2i", name, 4) for name in CAPTION_IDS
    ]
    rows[-1], rows[3] = ("t2i", "c23", ""), ("i2t", "i3", -1)
    pd.DataFrame(rows, columns=["direction", "query", "rank"]).to_csv(
        "r.csv", index=False
    )
    assert score("--ranks", "r.csv") == 0
    told = capsys.readouterr().out
    assert "i2t: 1 of 12 not found, as 'i3'; ranks are known below 1" in told
    assert "t2i: 1 of 24 not found, as 'c23'; ranks are known below 5" in told
    assert "at least: i2t_r5 91.67, i2t_r10 91.67, t2i_r10 95.83" in told
    own_row = next(
        line for line in told.splitlines() if line.strip().startswith("own  ")
    )
    assert own_row.split() == ["own", "91.7", "-", "-", "0.0", "95.8", "-", "-"]
    assert "no row is" in told
    assert not Path("results/try/open/external").exists()
    assert score("--ranks", "r.csv", "--depth", "10") == 0
    metrics = record().metrics
    assert (
        metrics["t2i_r10"] == pytest.approx(100 * 23 / 24) and metrics["t2i_medr"] == 5
    )
    assert "t2i_meanr" not in metrics and main(["report"]) == 0


def test_what_does_not_fit_is_refused(season):
    """What cannot be read at all, test_embedding_files tells."""
    images, captions = embeddings()
    np.save("short.npy", captions[:-1])
    np.save("wide.npy", np.full((CAPTIONS, 6), 0.5, np.float32))
    np.save("zero.npy", captions * (np.arange(CAPTIONS)[:, None] != 3))
    np.save("a.npy", images)
    reasons = {
        "short.npy": "expected the 24 captions of test, found 23",
        "a.npy": "expected the 24 captions of test, found 12",
        "wide.npy": "expected vectors of 5 numbers, as of the images, found 6",
        "zero.npy": "zeros alone for 'c3', item 3 of test (1 such vectors)",
        "none.npy": "expected a .npy file, found nothing",
        "a.h5": "expected one of .npy, .npz, .parquet, .csv, .tsv, .safetensors, .pt, .pth, .mat, "
        "found .h5",
    }
    words = ("--dataset", "open", "--name", "x", "--images", "a.npy", "--captions")
    for file, reason in reasons.items():
        error = str(refusal(command, *words, file))
        assert file in error and reason in error
    assert not Path("results/try/open/external").exists()


def test_one_kind_of_file_and_a_name_of_its_own_are_needed(season, capsys):
    pair = ("--images", "a.npy", "--captions", "b.npy")
    for words, message in (
        ((), "--images with --captions, or --matrix, or --ranks, found none of them"),
        (("--images", "a.npy"), "found 1 of them"),
        (("--matrix", "a.npy", "--ranks", "r.csv"), "found several kinds"),
        (
            (*pair, "--depth", "5"),
            "--depth: expected --ranks or --matrix, found --images",
        ),
        (
            (*pair, "--first-rank", "1"),
            "--first-rank: expected --ranks, found --images",
        ),
        (
            (*pair, "--not-found", "0"),
            "--not-found: expected --ranks, found --images",
        ),
        (
            ("--ranks", "r.csv", "--numbers", "bits"),
            "--numbers: expected --images with --captions or --matrix, found --ranks",
        ),
        (("--items", "todo"), "--items: expected a folder alone, found --name, too"),
        (
            ("--seed", "-1", "--ranks", "r.csv"),
            "--name and --seed: seed: expected greater",
        ),
        (("--name", "scan_t2i_avg", "--ranks", "r.csv"), "a name that no preset"),
        (("--name", "../up", "--ranks", "r.csv"), "--name and --seed: preset"),
        (("--name", "claims", "--ranks", "r.csv"), "a name that no preset"),
    ):
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
    assert (
        "a.npy: expected one row for each of 12 items, found one column for each; trans"
        in told
    )
    np.savez(
        "m.npz",
        image_ids=IMAGE_IDS,
        caption_ids=CAPTION_IDS,
        scores=captions @ images.T,
    )
    np.save("m.npy", captions @ images.T)
    for name in ("m.npy", "m.npz"):
        assert score("--matrix", name) == 2
        told = capsys.readouterr().err
        assert (
            "12 images (rows) by 24 captions (columns), found captions by images"
            in told
        )
    assert not Path("results/try/open/external").exists()


def test_a_doubt_fits_what_was_seen(season, capsys):
    images, captions = embeddings(0.1)
    assert score(*save_pair(images, captions)) == 0
    told = capsys.readouterr().out
    assert "chance" not in told and "replacing" not in told
    mixed = np.random.default_rng(3).permutation(CAPTIONS)
    assert score(*save_pair(images, captions[mixed])) == 0
    told = capsys.readouterr().out
    assert "external embeddings, replacing the row" in told
    assert (
        "near chance: rsum " in told
        and "check the order of the rows, or give ids" in told
    )
    np.save("m.npy", np.linalg.norm(images[:, None] - captions, axis=2))
    assert score("--matrix", "m.npy") == 0
    told = capsys.readouterr().out
    assert "far below chance: rsum 0.0, random 266.7; are these distances?" in told
    assert score(*save_pair(images, -captions)) == 0
    assert (
        "far below chance" in (told := capsys.readouterr().out) and "negated?" in told
    )


def test_ranks_of_other_queries_are_refused(season, capsys):
    rows = [("i2t", name, 0) for name in IMAGE_IDS] + [
        ("t2i", name, 0) for name in CAPTION_IDS
    ]
    lacks = "t2i: expected one row for each of the 24 test queries"

    def last(rank: object) -> list[tuple]:
        return [*rows[:-1], ("t2i", "c23", rank)]

    for change, message in (
        (rows[:-1], lacks),
        ([*rows, rows[-1]], f"{lacks}, found 25"),
        (
            [*rows[:-1], rows[0]],
            "i2t: expected one row for each of the 12 test queries, found 13",
        ),
        ([*rows, rows[0]], "found 13 rows, 'i0' twice"),
        (
            [*rows, ("tti", "c23", 0)],
            "direction: expected i2t or t2i, found 'tti' in 1 rows",
        ),
        (last(12), "from 0 below 12, found 12 for 'c23' (1 such)"),
        (last(0.5), "whole ranks from 0 below 12, found 0.5 for 'c23'"),
        (last("x"), "found x for 'c23'"),
        (last(-2), "found -2 for 'c23' (1 such)"),
        (
            last(999),
            "found 999 for 'c23' (1 such); add --not-found 999 if it means that",
        ),
        (
            [(*row[:2], 12) for row in rows[:-1]] + [("t2i", "c23", -1)],
            "add --first-rank 1 if these are positions from 1, or --not-found items",
        ),
    ):
        pd.DataFrame(change, columns=["direction", "query", "rank"]).to_csv(
            "r.csv", index=False
        )
        assert score("--ranks", "r.csv") == 2
        assert message in capsys.readouterr().err


def test_a_small_table_of_ranks_that_unpacks_to_much_is_refused(
    season, capsys, monkeypatch
):
    ranks = pa.array(["i2t"] * (1 << 16)).dictionary_encode()
    table = pa.table(
        {"direction": ranks, "query": ranks, "rank": pa.array([0] * (1 << 16))}
    )
    pq.write_table(table, "r.parquet", compression="zstd")
    monkeypatch.setattr(files, "MOST", 1 << 20)
    assert Path("r.parquet").stat().st_size < 4000
    assert score("--ranks", "r.parquet") == 2
    assert "at most 1048576 bytes, found more" in capsys.readouterr().err


# Corrections ---


@pytest.mark.parametrize(
    ("how", "given"),
    [
        ("nnn", ("--k", 2, "--alpha", 0.5)),
        ("inverted_softmax", ("--beta", 3)),
        ("qb_norm", ("--beta", 3)),
        ("dual_softmax", ("--beta", 3)),
    ],
)
def test_corrected_embeddings_are_ranked_as_the_loops_do(how, given, season):
    images, captions = embeddings(noise=1.0)
    bank = (
        np.random.default_rng(1).normal(size=(9, 5)) + 1,
        np.random.default_rng(2).normal(size=(7, 5)),
    )
    for name, vectors in zip(("c.npy", "d.npy"), bank, strict=True):
        np.save(name, vectors)
    files = ("--bank-images", "c.npy", "--bank-captions", "d.npy")
    files = () if how == "dual_softmax" else files
    assert score(*save_pair(images, captions), "--correct", how, *given, *files) == 0
    units = [
        v / np.linalg.norm(v, axis=1, keepdims=True) for v in (images, captions, *bank)
    ]
    numbers = {
        name[2:]: value for name, value in zip(given[::2], given[1::2], strict=True)
    }
    relevant = np.equal.outer(np.arange(IMAGES), OWNERS)
    kept = result().scores
    for way, queries, items, asking, right in (
        ("i2t", units[0], units[1], units[2], relevant),
        ("t2i", units[1], units[0], units[3], relevant.T),
    ):
        banks = () if how == "dual_softmax" else (asking @ items.T,)
        loops = getattr(naive, how)(queries @ items.T, *banks, **numbers)
        assert kept.best(way).tolist() == ranked(np.array(loops), right)
    made = record()
    sizes = {"i2t": 9, "t2i": 7} if files else {"i2t": IMAGES, "t2i": CAPTIONS}
    assert made.metrics["correction"] == {
        "how": how,
        "bank": sizes,
        "i2t": numbers,
        "t2i": numbers,
    }
    assert len(made.options["files"]) == 2 + len(files) // 2
    assert made.image_features["weights"]["file"] == "a.npy"
    assert made.text_features["vectors"].startswith("b.npy")


def test_a_correction_without_what_it_needs_is_refused(season, capsys):
    pair = save_pair(*embeddings())
    np.save("c.npy", np.full((4, 6), 0.5))
    files = ("--bank-images", "c.npy", "--bank-captions", "c.npy")
    for words, expected in (
        (
            (*pair, "--correct", "nnn", "--k", 2, "--alpha", 1),
            "found no --bank-images",
        ),
        ((*pair, "--correct", "nnn", "--k", 2, *files), "found no --alpha"),
        (
            (*pair, "--correct", "nnn", "--k", 0, "--alpha", 1, *files),
            "--k: expected a number above 0",
        ),
        (
            (*pair, "--correct", "dual_softmax", "--beta", 0),
            "--beta: expected a number above 0",
        ),
        (
            (*pair, "--correct", "dual_softmax", "--beta", 1, *files),
            "a --correct that takes --",
        ),
        ((*pair, "--correct", "nnn", "--beta", 1, *files), "a --correct that takes --"),
        ((*pair, "--k", 2), "a --correct that takes --"),
        ((*pair, "--correct", "qb_norm", "--beta", 1, *files), "rows of 5 numbers"),
        (("--matrix", "c.npy", "--correct", "nnn"), "--images with --captions"),
    ):
        assert score(*words) == 2
        assert expected in capsys.readouterr().err


# Whole numbers ---


def bits(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """24 bits of each image (I, 3) and caption (C, 3), packed; distances tie often."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 2, (IMAGES, 24), np.uint8)
    captions = images[OWNERS] ^ (rng.random((CAPTIONS, 24)) < 0.25)
    return np.packbits(images, axis=1), np.packbits(captions, axis=1)


def distances(images: np.ndarray, captions: np.ndarray) -> np.ndarray:
    """Hamming distances (I, C) of packed bits, by loops."""
    return np.array(
        [[int(np.bitwise_count(a ^ b).sum()) for b in captions] for a in images]
    )


def test_bits_are_ranked_by_their_hamming_distances(season, capsys):
    images, captions = bits()
    pair = save_pair(images, captions)
    assert score(*pair) == 2
    assert "--numbers bits or integers" in capsys.readouterr().err
    assert score(*pair, "--numbers", "bits") == 0
    told = capsys.readouterr().out
    assert re.search(
        r"b.npy: whole numbers from \d+ to \d+ \(uint8\), read as bits", told
    )
    apart, relevant = (
        distances(images, captions),
        np.equal.outer(np.arange(IMAGES), OWNERS),
    )
    kept = result().scores
    assert kept.best("i2t").tolist() == ranked(-apart, relevant)
    assert kept.best("t2i").tolist() == ranked(-apart.T, relevant.T)
    tied = [np.unique(row).size < CAPTIONS for row in apart]
    assert all(tied)
    made = record()
    assert made.options["numbers"] == "bits"
    assert made.metrics["mean_matched"] == pytest.approx(
        1 - apart[relevant].mean() / 12, abs=1e-5
    )
    assert main(["report"]) == 0


def test_banks_are_read_as_the_rest(season, capsys):
    pair, files = (
        save_pair(*bits()),
        ("--bank-images", "c.npy", "--bank-captions", "d.npy"),
    )
    how = (
        *pair,
        *files,
        "--correct",
        "nnn",
        "--k",
        2,
        "--alpha",
        0.5,
        "--numbers",
        "bits",
    )
    for name, packed in zip(("c.npy", "d.npy"), bits(seed=1), strict=True):
        np.save(name, packed)
    assert score(*how) == 0
    assert "d.npy: whole numbers from" in capsys.readouterr().out
    metrics = record().metrics
    for name, packed in zip("abcd", (*bits(), *bits(seed=1)), strict=True):
        np.save(f"{name}.npy", 2.0 * np.unpackbits(packed, axis=1) - 1)
    assert score(*how[:-2]) == 0
    assert record().metrics == metrics
    np.save("d.npy", bits(seed=1)[1])
    assert score(*how[:-2]) == 2
    assert "d.npy: expected floating-point numbers" in capsys.readouterr().err
    save_pair(*bits())
    assert score(*how) == 2
    assert "expected bits that are packed alike" in capsys.readouterr().err


def test_int8_of_both_signs_is_read_as_coordinates_and_told(season, capsys):
    images, captions = embeddings()
    scale = 60 / np.abs(captions).max()
    pair = save_pair(*(np.round(scale * x).astype(np.int8) for x in (images, captions)))
    assert score(*pair) == 0
    assert "(int8), read as coordinates" in capsys.readouterr().out
    assert score(*pair, "--numbers", "bfloat16") == 2
    assert score(*save_pair(images, captions), "--numbers", "integers") == 2
    assert "--numbers: expected files of whole numbers" in capsys.readouterr().err


# Conventions of ranks ---


def save_ranks(
    change: Callable[[int, int], object] = lambda rank, items: rank,
) -> tuple[str, str]:
    """Ranks of the embeddings, each changed with the size of its gallery."""
    images, captions = embeddings(2.0)
    units = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (images, captions)]
    scores, relevant = units[0] @ units[1].T, np.equal.outer(np.arange(IMAGES), OWNERS)
    rows = []
    for way, ids, of_way, right in (
        ("i2t", IMAGE_IDS, scores, relevant),
        ("t2i", CAPTION_IDS, scores.T, relevant.T),
    ):
        items = of_way.shape[1]
        changed = [change(rank, items) for rank in ranked(of_way, right)]
        rows += [(way, query, rank) for query, rank in zip(ids, changed, strict=True)]
    pd.DataFrame(rows, columns=["direction", "query", "rank"]).to_csv(
        "r.csv", index=False
    )
    return "--ranks", "r.csv"


def test_positions_from_1_are_read_if_somebody_says_so(season, capsys):
    assert score(*save_ranks()) == 0
    expected = record().metrics
    assert 0 < expected["i2t_r1"] < 100
    from_1 = save_ranks(lambda rank, items: rank + 1)
    assert score(*from_1) == 2
    assert "add --first-rank 1 if these are positions from 1" in capsys.readouterr().err
    assert not score(*from_1, "--first-rank", 1, name="one")
    assert (
        record("one").metrics == expected and record("one").options["first_rank"] == 1
    )
    none_first = save_ranks(lambda rank, items: min(rank + 1, items - 1))
    assert score(*none_first) == 2
    assert "found none; add --first-rank 1" in capsys.readouterr().err
    assert score(*none_first, "--first-rank", 0) == 0
    assert record().metrics["i2t_r1"] == 0
    assert score(*save_ranks(), "--first-rank", 1) == 2
    assert "whole ranks from 1 below 25, found 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rank, items: rank if rank < 3 else "", ()),
        (lambda rank, items: rank if rank < 3 else 999, ("--not-found", "999")),
        (lambda rank, items: rank if rank < 3 else "inf", ("--not-found", "inf")),
        (lambda rank, items: rank if rank < 3 else items, ("--not-found", "items")),
        (lambda rank, items: rank if rank < 3 else 7, ("--not-found", "7")),
        (lambda rank, items: rank + 1 if rank < 3 else "", ("--first-rank", "1")),
        (
            lambda rank, items: rank + 1 if rank < 3 else 0,
            ("--first-rank", "1", "--not-found", "0"),
        ),
        (
            lambda rank, items: rank + 1 if rank < 3 else items + 1,
            ("--first-rank", "1", "--not-found", "items"),
        ),
    ],
)
def test_what_was_not_found_may_be_any_value_that_is_named(
    season, capsys, change, words
):
    assert (
        score(*save_ranks(lambda rank, items: rank if rank < 3 else -1), "--depth", 10)
        == 0
    )
    expected = record().metrics
    capsys.readouterr()
    if words and "0" not in words:  # of so few, zeros may well be first ranks
        assert score(*save_ranks(change)) == 2
        error = capsys.readouterr().err
        assert "--first-rank" in error or "--not-found" in error
    assert score(*save_ranks(change), *words, "--depth", 10, name="other") == 0
    assert record("other").metrics == expected


def test_zeros_that_may_be_what_was_not_found_are_refused(season, capsys, tmp_path):
    rows = [("i2t", name, n % 6) for n, name in enumerate(IMAGE_IDS)]
    rows += [("t2i", name, n % 6) for n, name in enumerate(CAPTION_IDS)]
    pd.DataFrame(rows, columns=["direction", "query", "rank"]).to_csv(
        "r.csv", index=False
    )
    assert score("--ranks", "r.csv") == 2
    told = capsys.readouterr().err
    assert (
        "found 0 to 5, which may be positions from 1 with 0 for what was not found"
        in told
    )
    assert score("--ranks", "r.csv", "--first-rank", 0) == 0
    assert record().metrics["t2i_r1"] == pytest.approx(100 / 6)
    words = ("--first-rank", 1, "--not-found", 0, "--depth", 10)
    assert score("--ranks", "r.csv", *words, name="lost") == 0
    assert record("lost").metrics["t2i_r5"] == pytest.approx(500 / 6)


# What was not retrieved ---


def listed(scores_QG: np.ndarray, depth: int, value: float = -np.inf) -> np.ndarray:
    """The first scores of each row; the others are that value."""
    least = np.sort(scores_QG, axis=1)[:, -depth, None]
    return np.where(scores_QG >= least, scores_QG, value)


def test_minus_infinity_is_what_was_not_retrieved(season, capsys):
    images, captions = embeddings(4.0)
    scores = images @ captions.T
    np.save("m.npy", scores)
    assert score("--matrix", "m.npy") == 0
    expected = record().metrics
    np.savez("m.npz", i2t=listed(scores, 10), t2i=listed(scores.T, 10))
    assert score("--matrix", "m.npz", "--out", "r.parquet", name="lists") == 0
    told, made = capsys.readouterr().out, record("lists").metrics
    assert "m.npz: -inf is taken for what was not retrieved" in told
    recalls = [f"{way}_r{k}" for way in ("i2t", "t2i") for k in (1, 5, 10)]
    assert [made[name] for name in (*recalls, "rsum")] == [
        expected[name] for name in (*recalls, "rsum")
    ]
    assert not {"overlap_s", "t2i_meanr", "i2t_r1_tie_gap"} & set(made)
    kept = pd.read_parquet("r.parquet")
    assert (
        set(kept["depth"]) == {10}
        and (kept["rank"] < 10).all()
        and (kept["rank"] == -1).any()
    )
    assert main(["report"]) == 0
    np.savez("m.npz", i2t=listed(scores, 5), t2i=listed(scores.T, 5))
    assert score("--matrix", "m.npz", name="few") == 0
    told = capsys.readouterr().out
    assert "ranks are known below 5" in told and "at least: i2t_r10" in told
    own_row = next(
        line for line in told.splitlines() if line.strip().startswith("own  ")
    )
    shown = [f"{expected[name]:.1f}" for name in recalls]
    assert own_row.split()[1:] == [*shown[:2], "-", *shown[3:5], "-", "-"]
    assert "no row is written" in told


def test_lists_that_do_not_tell_a_direction_are_refused(season, capsys):
    images, captions = embeddings(1.0)
    scores = images @ captions.T
    first = listed(scores, 6)
    np.save("m.npy", first)
    assert score("--matrix", "m.npy") == 2
    told = capsys.readouterr().err
    assert (
        "m.npy: t2i: expected as many retrieved items" in told and "i2t and t2i" in told
    )
    both = np.maximum(first, listed(scores.T, 6).T)
    np.save("m.npy", both)
    assert score("--matrix", "m.npy") == 2
    assert "add --depth K" in capsys.readouterr().err
    assert score("--matrix", "m.npy", "--depth", 13) == 2
    assert score("--matrix", "m.npy", "--depth", 6) == 0
    both[0, 0] = np.nan
    np.save("m.npy", both)
    assert score("--matrix", "m.npy", "--depth", 6) == 2
    assert "NaN or infinity in row 0" in capsys.readouterr().err
    np.save("m.npy", scores)
    assert score("--matrix", "m.npy", "--depth", 6) == 2
    assert "--depth: expected lists: scores with -inf" in capsys.readouterr().err


def test_a_number_that_fills_a_matrix_is_told_and_never_ranks_above_scores(
    season, capsys
):
    images, captions = embeddings(1.0)
    scores = images @ captions.T
    np.savez("m.npz", i2t=listed(scores, 5, -100), t2i=listed(scores.T, 5, -100))
    assert score("--matrix", "m.npz") == 0
    told = capsys.readouterr().out
    assert "m.npz: i2t: -100 in 79% of the scores, the lowest" in told
    np.save("m.npy", listed(scores - 100, 5, 0))
    assert score("--matrix", "m.npy") == 2
    assert (
        "found 0 in 79% of the scores, above others; save -inf"
        in capsys.readouterr().err
    )


# Advice ---


def test_advice_is_a_command_that_works(season, capsys):
    images, captions = embeddings()
    assert score(*save_pair(images[:-1], captions), "--season", "try") == 2
    told = capsys.readouterr().err
    command_line = "rematch score --dataset open --season try --items FOLDER"
    assert command_line in told
    words = command_line.replace("FOLDER", "todo").split()[1:]
    assert main(words) == 0
    assert pd.read_csv("todo/images.csv")["image_id"].tolist() == IMAGE_IDS


def test_a_reader_that_is_no_dataset_needs_annotations(season, capsys):
    assert main(["score", "--dataset", "mscoco", "--items", "todo"]) == 2
    told = capsys.readouterr().err
    assert (
        "dataset 'mscoco': expected one of" in told and "add --annotations FILE" in told
    )
    assert main(["score", "--dataset", "opne", "--items", "todo"]) == 2
    assert "--annotations" not in capsys.readouterr().err
