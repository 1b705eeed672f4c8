"""Scores from elsewhere: matrices, and lists of what was retrieved."""

import numpy as np
import pandas as pd
import pytest
from external_files import (
    CAPTION_IDS,
    IMAGE_IDS,
    embeddings,
    record,
    refused_score,
    result,
    score,
    three_pairs,
)
from refusals import check, refused
from report_seasons import OWNERS

from benchmark.__main__ import main
from benchmark.commands.external_matrices import of_matrix
from benchmark.commands.external_scores import ReadingOptions
from benchmark.data import results
from benchmark.data.rank_keys import I2T

pytestmark = pytest.mark.usefixtures("external_season")


def test_a_matrix_has_rows_and_columns_by_id_or_in_order():
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


def test_each_direction_may_have_a_matrix_of_its_own():
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


def test_a_list_of_pairs_is_no_matrix(tmp_path):
    data = three_pairs()
    rows = [f"{image},{caption},0.5" for image in "abc" for caption in "xyz"]
    (tmp_path / "m.csv").write_text("\n".join(["image_id,caption_id,score", *rows]))
    with refused("m.csv", "scores (images, captions)", "pairs", "pivot"):
        of_matrix(tmp_path / "m.csv", data)


def test_the_axes_of_a_square_matrix_are_told(tmp_path):
    data = three_pairs()
    # each image's best is the next one's caption
    matrix = np.eye(3, k=1) + np.eye(3) / 2
    np.save(tmp_path / "m.npy", matrix)
    judged = of_matrix(tmp_path / "m.npy", data)
    (axes,) = judged.notes
    assert "i2t: rows" in axes and "images, columns" in axes
    assert judged.result.scores.ranks[I2T].best.tolist() == [1, 1, 0]
    np.savez(
        tmp_path / "m.npz", s=matrix, image_ids=list("abc"), caption_ids=list("xyz")
    )
    assert of_matrix(tmp_path / "m.npz", data).notes == []


def test_scores_of_double_precision_do_not_tie():
    matrix = np.round(
        np.matmul(*embeddings(), axes=[(0, 1), (1, 0), (0, 1)]).astype(float), 2
    )
    for offset, name in ((0, "near"), (1e9, "far")):
        np.save("m.npy", matrix + offset)
        score("--matrix", "m.npy", name=name)
    ranks = [result(name).scores for name in ("near", "far")]
    assert ranks[0].best("t2i").tolist() == ranks[1].best("t2i").tolist()


# What was not retrieved ---------------------------------------------------------------


def listed_to_depth(
    scores_QG: np.ndarray, depth: int, value: float = -np.inf
) -> np.ndarray:
    least = np.sort(scores_QG, axis=1)[:, -depth, None]
    return np.where(scores_QG >= least, scores_QG, value)


def test_minus_infinity_is_what_was_not_retrieved(capsys):
    images, captions = embeddings(4.0)
    scores = images @ captions.T
    np.save("m.npy", scores)
    assert score("--matrix", "m.npy") == 0
    expected = record().metrics
    np.savez(
        "m.npz", i2t=listed_to_depth(scores, 10), t2i=listed_to_depth(scores.T, 10)
    )
    assert score("--matrix", "m.npz", "--out", "r.parquet", name="lists") == 0
    told, made = capsys.readouterr().out, record("lists").metrics
    assert "m.npz: -inf" in told
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
    np.savez("m.npz", i2t=listed_to_depth(scores, 5), t2i=listed_to_depth(scores.T, 5))
    assert score("--matrix", "m.npz", name="few") == 0
    told = capsys.readouterr().out
    assert "known below 5" in told and "at least: i2t_r10" in told
    own_row = next(
        line for line in told.splitlines() if line.strip().startswith("own  ")
    )
    shown = [f"{expected[name]:.1f}" for name in recalls]
    assert own_row.split()[1:] == [*shown[:2], "-", *shown[3:5], "-", "-"]
    assert "few/0" not in results.read_kept("try", "open")


def test_what_a_longer_list_has_behind_the_depth_was_not_found(tmp_path):
    gone = -np.inf
    scores = np.array([[3.0, gone, gone], [2.0, 1.0, gone], [gone, gone, 1.0]])
    np.save(tmp_path / "m.npy", scores)
    made = of_matrix(tmp_path / "m.npy", three_pairs(), ReadingOptions(depth=1))
    lost = {way: is_lost.tolist() for way, is_lost in made.lost.items()}
    assert lost == {"i2t": [False, True, False], "t2i": [False] * 3}


def test_lists_that_do_not_tell_a_direction_are_refused(capsys):
    images, captions = embeddings(1.0)
    scores = images @ captions.T
    first = listed_to_depth(scores, 6)
    np.save("m.npy", first)
    check(refused_score("--matrix", "m.npy"), "m.npy: t2i", do="i2t and t2i")
    both = np.maximum(first, listed_to_depth(scores.T, 6).T)
    np.save("m.npy", both)
    check(refused_score("--matrix", "m.npy"), do="--depth K")
    check(refused_score("--matrix", "m.npy", "--depth", 13), do="--depth K")
    assert score("--matrix", "m.npy", "--depth", 6) == 0
    both[0, 0] = np.nan
    np.save("m.npy", both)
    error = refused_score("--matrix", "m.npy", "--depth", 6)
    check(error, found="NaN or infinity in row 0")
    np.save("m.npy", scores)
    error = refused_score("--matrix", "m.npy", "--depth", 6)
    check(error, "--depth", "-inf", "finite")


def test_a_number_that_fills_a_matrix_is_told_and_never_ranks_above_scores(capsys):
    images, captions = embeddings(1.0)
    scores = images @ captions.T
    np.savez(
        "m.npz",
        i2t=listed_to_depth(scores, 5, -100),
        t2i=listed_to_depth(scores.T, 5, -100),
    )
    assert score("--matrix", "m.npz") == 0
    told = capsys.readouterr().out
    assert "m.npz: i2t: -100 in 79% " in told
    np.save("m.npy", listed_to_depth(scores - 100, 5, 0))
    check(refused_score("--matrix", "m.npy"), found="0 in 79%", do="save -inf")


def test_the_least_number_of_a_type_may_fill_a_matrix(capsys):
    images, captions = embeddings()
    scores = images @ captions.T
    lowest = np.median(scores)
    # an even number of scores, whose two middle ones are these
    filled = np.where(scores > 2 * lowest, scores, np.finfo(np.float32).min)
    filled[:8] = np.finfo(np.float32).min
    np.save("m.npy", filled)
    assert score("--matrix", "m.npy") == 0
    assert "the lowest" in capsys.readouterr().out


def test_no_list_is_shorter_than_the_depth():
    images, captions = embeddings()
    scores = images @ captions.T
    scores[3, 5:] = -np.inf
    np.savez("m.npz", i2t=scores, t2i=captions @ images.T)
    error = refused_score("--matrix", "m.npz", "--depth", "6")
    check(error, "m.npz: i2t", found="5 for 'i3', up to 24", do="at most 5")
    assert score("--matrix", "m.npz", "--depth", "5") == 0


def test_captions_by_images_are_refused():
    images, captions = embeddings()
    np.save("m.npy", captions @ images.T)
    error = refused_score("--matrix", "m.npy")
    check(error, "m.npy", "12 images (rows)", "captions by images", "transpose it")
