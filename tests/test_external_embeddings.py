"""Embeddings from elsewhere, against loops over their cosines."""

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
    result,
    save_pair,
    score,
    three_pairs,
)
from oracles import corrections as naive
from refusals import refusal, refused
from report_seasons import CAPTIONS, IMAGES, OWNERS

from benchmark.__main__ import main
from benchmark.commands import score as command
from benchmark.commands.external_embeddings import of_embeddings
from benchmark.data.rank_keys import I2T

pytestmark = pytest.mark.usefixtures("external_season")


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


def test_the_same_vectors_for_images_and_captions_are_refused(tmp_path):
    data = three_pairs()
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(3, 4)))
    with refused(
        "--images, --captions", found="the same numbers twice", do="the file of the cap"
    ):
        of_embeddings(tmp_path / "a.npy", tmp_path / "a.npy", data)


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


def test_files_in_each_others_place_and_turned_ones_are_told(capsys):
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


def test_a_correction_without_what_it_needs_is_refused(capsys):
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


def test_int8_of_both_signs_is_read_as_coordinates_and_told(capsys):
    images, captions = embeddings()
    scale = 60 / np.abs(captions).max()
    pair = save_pair(*(np.round(scale * x).astype(np.int8) for x in (images, captions)))
    assert score(*pair) == 0
    assert "(int8), read as coordinates" in capsys.readouterr().out
    assert score(*pair, "--numbers", "bfloat16") == 2
    assert score(*save_pair(images, captions), "--numbers", "integers") == 2
    assert "--numbers: expected files of whole numbers" in capsys.readouterr().err
