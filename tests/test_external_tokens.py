"""`score` of token matrices: ranks by MaxSim, and what does not fit."""

from pathlib import Path

import numpy as np
import pytest
from external_files import IMAGE_IDS, ranked, refused_score, result, score
from refusals import check
from report_seasons import CAPTIONS, IMAGES, OWNERS

pytestmark = pytest.mark.usefixtures("external_season")


def tokens() -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(0)
    images = [rng.normal(size=(rng.integers(2, 7), 5)) for _ in range(IMAGES)]
    captions = []
    for owner in OWNERS:
        near = images[owner][rng.integers(2, size=rng.integers(1, 4))]
        captions.append(near + 0.8 * rng.normal(size=near.shape))
    return images, captions


def save(name: str, matrices: list[np.ndarray], **ids: object) -> str:
    lengths = [len(matrix) for matrix in matrices]
    vectors = np.concatenate(matrices).astype(np.float32)
    np.savez(name, tokens=vectors, lengths=lengths, **ids)
    return name


def test_token_matrices_are_ranked_as_loops_do(capsys):
    images, captions = tokens()
    scores = np.empty((IMAGES, CAPTIONS))
    for i, image in enumerate(images):
        for c, caption in enumerate(captions):
            scores[i, c] = sum(max(word @ patch for patch in image) for word in caption)
    right = np.equal.outer(np.arange(IMAGES), OWNERS)
    turned = save("a.npz", images[::-1], image_id=IMAGE_IDS[::-1])
    for name in (save("c.npz", images), turned):
        assert score("--images", name, "--captions", save("b.npz", captions)) == 0
        assert "MaxSim" in capsys.readouterr().out
        kept = result().scores
        assert kept.best("i2t").tolist() == ranked(scores, right)
        t2i = kept.best("t2i").tolist()
        assert t2i == ranked(scores.T, right.T) and 0 < t2i.count(0) < CAPTIONS


def test_what_does_not_fit_is_refused():
    images, captions = tokens()
    save("a.npz", images)
    save("b.npz", captions)
    save("short.npz", captions[:-1])
    save("wide.npz", [np.ones((2, 6))] * CAPTIONS)
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
