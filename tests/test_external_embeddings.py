"""Embeddings and token matrices from elsewhere, against loops over their cosines and
over MaxSim."""

import re
from pathlib import Path

import numpy as np
import pytest
from external_files import (
    CAPTION_IDS,
    IMAGE_IDS,
    embeddings,
    ranked,
    record,
    refused_score,
    result,
    save_pair,
    score,
    three_pairs,
)
from oracles import rescoring as naive
from refusals import check, refused
from report_seasons import CAPTIONS, IMAGES, OWNERS

from benchmark.__main__ import main
from benchmark.commands import external_embeddings
from benchmark.commands.external_embeddings import (
    are_tokens,
    of_embeddings,
    read_tokens,
)
from benchmark.data.rank_keys import I2T

pytestmark = pytest.mark.usefixtures("external_season")
MATRICES = [np.full((length, 3), length, np.float32) for length in (2, 1, 4)]
GIVEN = {"tokens": np.concatenate(MATRICES), "lengths": [2, 1, 4]}


def test_embeddings_are_ranked_as_a_loop_over_their_cosines_does():
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


def test_other_shapes_of_the_same_vectors_are_told(capsys):
    images, captions = embeddings()
    score(*save_pair(images, captions))
    expected, each = record().metrics, CAPTIONS // IMAGES
    assert OWNERS.tolist() == np.repeat(np.arange(IMAGES), each).tolist()
    for pair, file in (
        ((images, captions.reshape(IMAGES, each, -1)), "b.npy"),
        ((images[OWNERS], captions), "a.npy"),
    ):
        capsys.readouterr()
        assert score(*save_pair(*pair)) == 0
        assert f"{file}: " in capsys.readouterr().out and record().metrics == expected
    other_axes = np.stack([captions] * 5, 1)
    for pair, file, count in (
        ((images[:, None], captions), "a.npy", IMAGES),
        ((images, other_axes), "b.npy", CAPTIONS),
    ):
        error = refused_score(*save_pair(*pair))
        check(error, file, "(N, F)", do=f"({count}, 5)")


def test_the_same_vectors_for_images_and_captions_are_refused(tmp_path):
    data = three_pairs()
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(3, 4)))
    path = tmp_path / "a.npy"
    with refused("--images, --captions", found="twice", do=path):
        of_embeddings(path, path, data)


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1e200])
def test_lengths_of_vectors_do_not_matter(tmp_path, scale):
    data = three_pairs()
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


def test_what_does_not_fit_is_refused():
    images, captions = embeddings()
    np.save("short.npy", captions[:-1])
    np.save("wide.npy", np.full((CAPTIONS, 6), 0.5, np.float32))
    np.save("zero.npy", captions * (np.arange(CAPTIONS)[:, None] != 3))
    np.save("a.npy", images)
    reasons = {
        "short.npy": ("24 captions", "23"),
        "a.npy": ("24 captions", "12"),
        "wide.npy": ("5 numbers", "6"),
        "zero.npy": ("", "'c3' (1 such"),
        "none.npy": (".npy", "nothing"),
        "a.h5": (".npz, .parquet, .csv", ".h5"),
    }
    for file, (expected, found) in reasons.items():
        error = refused_score("--images", "a.npy", "--captions", file)
        check(error, file, expected, found)
    assert not Path("results/try/open/external").exists()


def test_files_in_each_others_place_and_turned_ones_are_refused():
    images, captions = embeddings()
    error = refused_score(*save_pair(captions, images))
    check(error, "--images, --captions", do="--images b.npy --captions a.npy")
    np.savez("a.npz", ids=CAPTION_IDS, x=captions)
    np.savez("b.npz", ids=IMAGE_IDS, x=images)
    error = refused_score("--images", "a.npz", "--captions", "b.npz")
    check(error, do="--images b.npz --captions a.npz")
    error = refused_score(*save_pair(images.T, captions))
    check(error, "a.npy", "each of 12", "column for each", "transpose")
    np.savez(
        "m.npz",
        image_ids=IMAGE_IDS,
        caption_ids=CAPTION_IDS,
        scores=captions @ images.T,
    )
    np.save("m.npy", captions @ images.T)
    for name in ("m.npy", "m.npz"):
        error = refused_score("--matrix", name)
        check(error, name, "12 images", "captions by images", "transpose")
    assert not Path("results/try/open/external").exists()


# Corrections --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "given"),
    [
        ("nnn", ("--k", 2, "--alpha", 0.5)),
        ("inverted_softmax", ("--beta", 3)),
        ("qb_norm", ("--beta", 3)),
        ("dual_softmax", ("--beta", 3)),
    ],
)
def test_corrected_embeddings_are_ranked_as_the_loops_do(how, given):
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


def test_a_correction_without_what_it_needs_is_refused():
    pair = save_pair(*embeddings())
    np.save("c.npy", np.full((4, 6), 0.5))
    files = ("--bank-images", "c.npy", "--bank-captions", "c.npy")
    nnn, dual = ("--correct", "nnn"), ("--correct", "dual_softmax")
    for words, where, found in (
        ((*pair, *nnn, "--k", 2, "--alpha", 1), "nnn", "no --bank-images"),
        ((*pair, *nnn, "--k", 2, *files), "nnn", "no --alpha"),
        ((*pair, *nnn, "--k", 0, "--alpha", 1, *files), "--k", 0),
        ((*pair, *dual, "--beta", 0), "--beta", 0),
        ((*pair, *dual, "--beta", "nan"), "--beta", "nan"),
        # its exponentials would be 0, and all scores tie
        ((*pair, *dual, "--beta", 1000), "--beta", "1000"),
        ((*pair, "--correct", "qb_norm", "--beta", 1e-308, *files), "--beta", "1e-308"),
        ((*pair, *nnn, "--k", 1, "--alpha", 1e300, *files), "--alpha", "1e+300"),
        ((*pair, *nnn, "--k", 1, "--alpha", "inf", *files), "--alpha", "inf"),
        ((*pair, *dual, "--beta", 1, *files), "--bank-images", "dual_softmax"),
        ((*pair, *nnn, "--beta", 1, *files), "--beta", "nnn"),
        ((*pair, "--k", 2), "--k", "none"),
        ((*pair, "--correct", "qb_norm", "--beta", 1, *files), "c.npy", (4, 6)),
        (("--matrix", "c.npy", *nnn), "--correct", "--matrix"),
    ):
        check(refused_score(*words), where, found=found)


def test_a_bank_has_as_many_queries_as_are_averaged():
    images, captions = embeddings()
    np.save("c.npy", images[:4])
    np.save("d.npy", captions[:3])
    banks = ("--bank-images", "c.npy", "--bank-captions", "d.npy")
    nnn = ("--correct", "nnn", "--alpha", 1, *banks)
    pair = save_pair(images, captions)
    check(refused_score(*pair, *nnn, "--k", 4), "--k", "at most 3", 4, "validation")
    assert score(*pair, *nnn, "--k", 3) == 0


# Whole numbers ------------------------------------------------------------------------


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


def test_bits_are_ranked_by_their_hamming_distances(capsys):
    images, captions = bits()
    pair = save_pair(images, captions)
    check(refused_score(*pair), do="--numbers bits or integers")
    assert score(*pair, "--numbers", "bits") == 0
    assert re.search(r"b.npy: .+ \(uint8\), read as bits", capsys.readouterr().out)
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


def test_banks_are_read_as_the_rest(capsys):
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
    assert "d.npy: " in capsys.readouterr().out
    metrics = record().metrics
    for name, packed in zip("abcd", (*bits(), *bits(seed=1)), strict=True):
        np.save(f"{name}.npy", 2.0 * np.unpackbits(packed, axis=1) - 1)
    assert score(*how[:-2]) == 0
    assert record().metrics == metrics
    np.save("d.npy", bits(seed=1)[1])
    check(refused_score(*how[:-2]), "d.npy", "floating-point")
    save_pair(*bits())
    check(refused_score(*how), expected="packed alike")


def test_int8_of_both_signs_is_read_as_coordinates_and_told(capsys):
    images, captions = embeddings()
    scale = 60 / np.abs(captions).max()
    pair = save_pair(*(np.round(scale * x).astype(np.int8) for x in (images, captions)))
    assert score(*pair) == 0
    assert "(int8), read as coordinates" in capsys.readouterr().out
    assert score(*pair, "--numbers", "bfloat16") == 2
    error = refused_score(*save_pair(images, captions), "--numbers", "integers")
    check(error, "--numbers", "whole numbers")


# Token matrices -----------------------------------------------------------------------


def token_matrices() -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(0)
    images = [rng.normal(size=(rng.integers(2, 7), 5)) for _ in range(IMAGES)]
    captions = []
    for owner in OWNERS:
        near = images[owner][rng.integers(2, size=rng.integers(1, 4))]
        captions.append(near + 0.8 * rng.normal(size=near.shape))
    return images, captions


def save_tokens(name: str, matrices: list[np.ndarray], **ids: object) -> str:
    lengths = [len(matrix) for matrix in matrices]
    vectors = np.concatenate(matrices).astype(np.float32)
    np.savez(name, tokens=vectors, lengths=lengths, **ids)
    return name


def test_token_matrices_are_ranked_as_loops_do(capsys):
    images, captions = token_matrices()
    scores = np.empty((IMAGES, CAPTIONS))
    for i, image in enumerate(images):
        for c, caption in enumerate(captions):
            scores[i, c] = sum(max(word @ patch for patch in image) for word in caption)
    right = np.equal.outer(np.arange(IMAGES), OWNERS)
    turned = save_tokens("a.npz", images[::-1], image_id=IMAGE_IDS[::-1])
    for name in (save_tokens("c.npz", images), turned):
        assert (
            score("--images", name, "--captions", save_tokens("b.npz", captions)) == 0
        )
        assert "MaxSim" in capsys.readouterr().out
        kept = result().scores
        assert kept.best("i2t").tolist() == ranked(scores, right)
        t2i = kept.best("t2i").tolist()
        assert t2i == ranked(scores.T, right.T) and 0 < t2i.count(0) < CAPTIONS


def test_token_matrices_that_do_not_fit_are_refused():
    images, captions = token_matrices()
    save_tokens("a.npz", images)
    save_tokens("b.npz", captions)
    save_tokens("short.npz", captions[:-1])
    save_tokens("wide.npz", [np.ones((2, 6))] * CAPTIONS)
    np.save("b.npy", [caption[0] for caption in captions])
    pair = ("--images", "a.npz", "--captions", "b.npz")
    for words, where, expected, found in (
        (("--images", "a.npz", "--captions", "b.npy"), "--images", "token", "b.npy"),
        (("--images", "a.npz", "--captions", "short.npz"), "short", CAPTIONS, "23"),
        (("--images", "a.npz", "--captions", "wide.npz"), "wide", "5 numbers", "6"),
        (("--images", "b.npz", "--captions", "a.npz"), "--images", "first", "a.npz"),
        ((*pair, "--correct", "dual_softmax", "--beta", 1), "--correct", "", "token"),
        ((*pair, "--numbers", "bits"), "--numbers", "", "token"),
        (("--images", "a.npz", "--captions", "a.npz"), "--images", "", "twice"),
        (("--images", "a.npz", "--captions", "no.npz"), "no.npz", "a file", "nothing"),
    ):
        check(refused_score(*words), where, expected, found)
    assert not Path("results/try/open/external").exists()


# Files of token matrices --------------------------------------------------------------


def test_the_tokens_of_each_item_are_read_with_their_ids(tmp_path):
    np.savez(tmp_path / "x.npz", **GIVEN, image_id=["a", "b", "c"])
    (tmp_path / "x_ids.txt").write_text("a\nb\nc\n")
    stored = read_tokens(tmp_path / "x.npz")
    for found, matrix in zip(stored.matrices, MATRICES, strict=True):
        assert np.array_equal(found, matrix)
    assert stored.rows.values.tolist() == [[2.0] * 3, [1.0] * 3, [4.0] * 3]
    assert stored.rows.ids == dict.fromkeys(("image_id", "x_ids.txt"), ["a", "b", "c"])


def test_other_files_are_no_token_files(tmp_path):
    np.savez(tmp_path / "x.npz", **GIVEN)
    np.savez(tmp_path / "y.npz", tokens=GIVEN["tokens"])
    np.save(tmp_path / "z.npy", GIVEN["tokens"])
    named = [tmp_path / name for name in ("x.npz", "y.npz", "z.npy", "none.npz")]
    assert [are_tokens(path) for path in named] == [True, False, False, False]


@pytest.mark.parametrize(
    ("change", "where", "found"),
    [
        ({"lengths": [2, 1, 3]}, "lengths", "1 or more, 6 in all"),
        ({"lengths": [3, 0, 4]}, "lengths", "0 or more, 7 in all"),
        ({"lengths": [2.0, 1.0, 4.0]}, "lengths", "float64 (3,)"),
        ({"lengths": np.zeros(0, int)}, "lengths", "int64 (0,)"),
        ({"tokens": np.ones((3, 7, 2))}, "tokens", "(3, 7, 2)"),
        ({"tokens": np.ones((7, 3), int)}, "tokens", "int64"),
        ({"tokens": np.full((7, 3), np.inf)}, "", "item 0 (3 such"),
        ({"masks": np.ones((3, 4))}, "", "'masks'"),
        ({"image_id": ["a", "b"]}, "", "'image_id'"),
    ],
)
def test_what_is_no_token_matrix_is_refused(tmp_path, change, where, found):
    path = tmp_path / "x.npz"
    np.savez(path, **GIVEN | change)
    with refused(f"{path}: {where}" if where else path, found=found):
        read_tokens(path)


def test_lengths_whose_sum_begins_at_0_again_are_refused(tmp_path):
    lengths = np.array([2**63 + 2, 2**63 + 1, 4], np.uint64)
    np.savez(tmp_path / "a.npz", tokens=GIVEN["tokens"], lengths=lengths)
    with refused("a.npz: lengths", "7 in all"):
        read_tokens(tmp_path / "a.npz")


def test_captions_that_are_not_side_by_side_are_no_rows_of_their_image(tmp_path):
    data = three_pairs()
    vars(data.split("test"))["image_of_caption"] = np.array([0, 2, 1])
    rng = np.random.default_rng(0)
    np.save(tmp_path / "a.npy", rng.normal(size=(3, 4)))
    np.save(tmp_path / "b.npy", rng.normal(size=(3, 1, 4)))
    with refused("b.npy", "(N, F)", "(3, 1, 4)"):
        of_embeddings(tmp_path / "a.npy", tmp_path / "b.npy", data)


def test_the_seed_draws_the_bank(monkeypatch):
    monkeypatch.setattr(external_embeddings, "BANK", 3)
    files = save_pair(*embeddings())
    np.save("c.npy", np.random.default_rng(1).normal(size=(90, 5)))
    np.save("d.npy", np.random.default_rng(2).normal(size=(90, 5)))
    banks = ("--bank-images", "c.npy", "--bank-captions", "d.npy")
    found = []
    for seed in (0, 1, 0):
        words = (*files, *banks, "--correct", "qb_norm", "--beta", 9, "--seed", seed)
        assert score(*words, name="drawn") == 0
        found.append(record("drawn", seed).metrics)
    assert found[0] == found[2] != found[1]
