"""Fisher vectors of HGLMM, against values by hand and slow loops
(tests/oracles/hglmm.py)."""

import numpy as np
import pytest
from made_inputs import CAPTIONS, IS_TRAIN, SMALL, WORDS
from oracles import hglmm as naive
from refusals import refused
from sklearn.decomposition import FastICA

from benchmark.data.feature_folders import Words
from benchmark.data.vocabularies import tokenise
from benchmark.features import hglmm

# Mixture ------------------------------------------------------------------------------


def mixture_of(K: int, E: int, seed: int = 0) -> hglmm.Mixture:
    """Overlapping; both families, unequal priors."""
    rng = np.random.default_rng(seed)
    laplacian = (np.arange(K * E).reshape(K, E) + seed) % 2 == 0
    prior = np.arange(1, K + 1) / np.arange(1, K + 1).sum()
    return hglmm.Mixture(
        prior, laplacian, rng.normal(size=(K, E)), rng.uniform(0.8, 2.0, (K, E))
    )


def gaussians(location: np.ndarray, scale: np.ndarray) -> hglmm.Mixture:
    """With equal priors."""
    K = len(location)
    return hglmm.Mixture(
        np.full(K, 1 / K), np.zeros(location.shape, bool), location, scale
    )


def nested(mixture: hglmm.Mixture) -> tuple:
    arrays = (mixture.prior, mixture.laplacian, mixture.location, mixture.scale)
    return tuple(array.tolist() for array in arrays)


def samples(count: int, E: int = 4, seed: int = 0) -> np.ndarray:
    """Two clouds; half of the dimensions heavy-tailed."""
    rng = np.random.default_rng(seed)
    x = np.where(
        np.arange(E) % 2, rng.laplace(size=(count, E)), rng.normal(size=(count, E))
    )
    return x + 1.5 * (rng.random((count, 1)) < 0.5)


def test_expectation_is_the_oracles():
    x, mixture = samples(50), mixture_of(3, 4)
    posterior, likelihood = hglmm.expectation(x, mixture)
    expected = [naive.posterior(word, nested(mixture)) for word in x.tolist()]
    np.testing.assert_allclose(posterior, expected, rtol=1e-10)
    total = naive.log_likelihood(x.tolist(), nested(mixture))
    assert likelihood == pytest.approx(total / 50, abs=1e-10)


def test_scales_begin_as_those_of_all_words():
    x = np.array([[0.0], [0.0], [0.0], [4.0]]).repeat(5, axis=1)
    mixture = hglmm.start(x, 2)
    assert 0 < mixture.laplacian.mean() < 1
    expected = np.where(mixture.laplacian, 1.0, np.sqrt(3))
    np.testing.assert_allclose(mixture.scale, expected)


@pytest.mark.parametrize("floor", [1e-3, 0.9])  # 0.9 bites
def test_ten_iterations_are_the_oracles(monkeypatch, floor):
    monkeypatch.setattr(hglmm, "FLOOR", floor)
    x, mixture = samples(50), hglmm.start(samples(50), 3)
    fitted, likelihoods = hglmm.fit(x, mixture)
    expected = nested(mixture)
    for _ in range(10):
        expected = naive.em_step(x.tolist(), expected, floor)
    np.testing.assert_allclose(fitted.prior, expected[0], rtol=1e-10)
    assert np.array_equal(fitted.laplacian, expected[1])
    np.testing.assert_allclose(fitted.location, expected[2], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(fitted.scale, expected[3], rtol=1e-10)
    assert 0 < fitted.laplacian.mean() < 1 and len(likelihoods) == 11
    assert np.ptp(fitted.prior) > 0.05
    floors = np.where(fitted.laplacian, floor, np.sqrt(floor))
    assert (fitted.scale >= floors).all() and (fitted.scale == floors).any() == (
        floor == 0.9
    )


def test_of_two_middle_values_the_lower_is_the_median():
    x = np.array([[0.0], [1.0], [2.0], [10.0]])
    old = hglmm.Mixture(np.ones(1), np.ones((1, 1)) > 0, x[3:], x[1:2])
    order = np.arange(4)[None]
    fitted = hglmm.maximisation(x, order, np.ones((4, 1)), old)
    assert fitted.laplacian.tolist() == [[True]]
    assert fitted.location.tolist() == [[1.0]]
    assert fitted.scale.tolist() == [[2.75]]  # (1 + 0 + 1 + 9) / 4


# Fisher vectors -----------------------------------------------------------------------


@pytest.mark.slow
def test_gradients_are_the_oracles():
    x, mixture = samples(50), mixture_of(3, 4)
    x[3, 1], x[7, 2] = mixture.location[1, 1], mixture.location[0, 2]  # at the peaks
    assert (
        mixture.laplacian[0, 2] and mixture.laplacian[1, 1] != mixture.laplacian[1, 0]
    )
    gradients = hglmm.gradients(x, mixture)
    for rows in ([0], [3], [7], [5, 5, 9], range(50)):
        expected = naive.fisher_vector(x[rows].tolist(), nested(mixture))
        total = gradients[rows].sum(0) / np.sqrt(len(rows))
        np.testing.assert_allclose(total, expected, rtol=1e-10, atol=1e-10)


def test_gradients_are_those_by_hand():
    """One component. Gaussian: u, then (u^2 - 1) / root 2. Laplacian: sign, then |u| -
    1."""
    standard = gaussians(np.zeros((1, 2)), np.ones((1, 2)))
    expected = [[1.0, -2.0, 0.0, 3 / np.sqrt(2)]]
    np.testing.assert_allclose(
        hglmm.gradients(np.array([[1.0, -2.0]]), standard), expected
    )
    ones = np.ones((1, 2))
    wide = hglmm.Mixture(np.ones(1), ones > 0, ones, 2 * ones)
    gradients = hglmm.gradients(np.array([[5.0, -2.0], [1.0, 2.0]]), wide)
    assert gradients.tolist() == [[1, -1, 1, 0.5], [0, 1, -1, -0.5]]


def oracle_vectors(
    captions: list[str], is_train: np.ndarray, words: Words, K: int
) -> np.ndarray:
    # only ICA is scikit-learn's
    known = [[word for word in tokenise(text) if word in words] for text in captions]
    train = [row for row, fitted in zip(known, is_train, strict=True) if fitted]
    seen = sorted({word for row in train for word in row})
    unit = words.vectors.astype(float)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    ica = FastICA(random_state=0, whiten="unit-variance").fit(unit[words.ids(seen)])
    x = ica.transform(unit)
    x *= 10 / np.linalg.norm(x, axis=1, keepdims=True)
    fitted = x[words.ids(seen)]
    mixture = nested(hglmm.start(fitted, K))
    for _ in range(10):
        mixture = naive.em_step(fitted.tolist(), mixture, 1e-3)
    empty = [0.0] * (2 * K * x.shape[1])
    vectors = [
        naive.fisher_vector(x[words.ids(row)], mixture) if row else empty
        for row in known
    ]
    return np.array([naive.normalised(vector) for vector in vectors])


def test_words_of_one_vector_are_refused():
    words = Words(("w00", "w01"), np.ones((2, 3), np.float32))
    captions = ["w00 w01", "w01", "w00"]
    with refused("hglmm", "different vectors", "none"):
        hglmm.encode(captions, np.ones(3, bool), words, SMALL)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:FastICA did not converge")
def test_all_of_it_is_the_oracles():
    """PCA to all dimensions turns and shifts, which leaves distances alone."""
    captions = [*CAPTIONS[:-2], "w00 unheard", "never seen"]
    vectors, facts = hglmm.encode(captions, IS_TRAIN, WORDS, SMALL)
    expected = oracle_vectors(captions, IS_TRAIN, WORDS, 2)
    assert vectors.shape == expected.shape == (50, 12)
    apart = np.linalg.norm(vectors[:, None] - vectors, axis=2)
    wanted = np.linalg.norm(expected[:, None] - expected, axis=2)
    np.testing.assert_allclose(apart, wanted, atol=1e-5)
    # the mean is the training one
    np.testing.assert_allclose(vectors[:40].mean(0), 0, atol=1e-6)
    assert np.abs(vectors[40:].mean(0)).max() > 1e-3
    assert np.linalg.norm(vectors[-1]) == pytest.approx(
        np.linalg.norm(expected[:40].mean(0)), 1e-5
    )
    assert (facts["fisher_dimensions"], facts["captions_fitted"]) == (12, 40)
    assert facts["captions_without_known_words"] == 1
