"""Normalised CCA against SciPy's generalised eigenproblem and covariances of NumPy."""

import numpy as np
import pytest
import scipy.linalg
import torch
from made_inputs import captions

from benchmark.contracts.methods import NotApplicableError, Sizes
from benchmark.contracts.methods import cca as method

ROWS, IMAGE_SIZE, TEXT_SIZE = 400, 7, 5
FREE = 1e-9  # hardly a ridge


def training_rows() -> tuple[np.ndarray, np.ndarray]:
    """Two views, three hidden numbers, noise, far from the origin."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(ROWS, 3))
    images = hidden @ rng.normal(size=(3, IMAGE_SIZE)) + rng.normal(
        size=(ROWS, IMAGE_SIZE)
    )
    texts = hidden @ rng.normal(size=(3, TEXT_SIZE)) + rng.normal(
        size=(ROWS, TEXT_SIZE)
    )
    return images + 20.0, texts * np.arange(1, TEXT_SIZE + 1) - 5.0


def chunks(images: np.ndarray, texts: np.ndarray, size: int = ROWS):
    x, y = torch.from_numpy(images), torch.from_numpy(texts)
    for start in range(0, len(x), size):
        yield x[start : start + size], captions(y[start : start + size])


def fitted(
    images: np.ndarray, texts: np.ndarray, size: int = ROWS, **options
) -> method.Model:
    config = method.Config(**options)
    model = method.Model(
        config, Sizes(image=images.shape[1], text=texts.shape[1])
    ).double()
    model.fit(chunks(images, texts, size))
    return model


def solved_as_eigenproblem(images: np.ndarray, texts: np.ndarray, regulariser: float):
    """Correlations, and directions of each view whose projections have variance 1,
    ridge included."""
    f = images.shape[1]
    covariance = np.cov(images.T, texts.T, bias=True)
    crossed, own = covariance.copy(), covariance.copy()
    crossed[:f, :f], crossed[f:, f:], own[:f, f:], own[f:, :f] = 0, 0, 0, 0
    for view in (slice(f), slice(f, None)):
        largest = np.linalg.norm(own[view, view], 2)
        own[view, view] += regulariser * largest * np.eye(len(own[view, view]))
    values, vectors = scipy.linalg.eigh(crossed, own)
    order = np.argsort(values)[::-1][: min(f, texts.shape[1])]
    vectors = vectors[:, order] * np.sqrt(2)  # each view has half of the variance 1
    return values[order], vectors[:f], vectors[f:]


@pytest.mark.parametrize("power", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("regulariser", [FREE, 0.0001, 0.1])
def test_scores_are_cosines_of_the_scaled_solution(regulariser, power):
    images, texts = training_rows()
    model = fitted(images, texts, regulariser=regulariser, power=power)
    correlations, x_map, y_map = solved_as_eigenproblem(images, texts, regulariser)
    x = (images - images.mean(0)) @ x_map * correlations**power
    y = (texts - texts.mean(0)) @ y_map * correlations**power
    norms = np.linalg.norm(x, axis=1)[:, None] * np.linalg.norm(y, axis=1)
    ((_, batch),) = chunks(images, texts)
    scores = model.similarity(
        model.encode_images(torch.from_numpy(images)), model.encode_captions(batch)
    )
    np.testing.assert_allclose(scores.numpy(), x @ y.T / norms, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("size", [1, 7, 399])
def test_chunks_change_nothing(size):
    images, texts = training_rows()
    whole, parts = (
        fitted(images, texts).state_dict(),
        fitted(images, texts, size).state_dict(),
    )
    for name, values in whole.items():
        signs = (values * parts[name]).sum(0).sign()  # a direction may point either way
        torch.testing.assert_close(parts[name] * signs, values, rtol=1e-8, atol=1e-8)


def test_moments_of_float32_rows_are_summed_in_float64():
    rng = np.random.default_rng(0)
    rows = (1000.0 + 0.1 * rng.normal(size=(5000, 3))).astype(np.float32)
    mean, covariance = method.moments(torch.from_numpy(rows).split(100))
    exact = rows.astype(np.float64)
    np.testing.assert_allclose(mean.numpy(), exact.mean(0), rtol=1e-12)
    np.testing.assert_allclose(
        covariance.numpy(), np.cov(exact.T, bias=True), rtol=1e-5
    )


@pytest.mark.parametrize("side", [0, 1])
def test_features_that_never_change_are_not_applicable(side):
    rows = list(training_rows())
    rows[side] = np.zeros_like(rows[side])
    with pytest.raises(
        NotApplicableError, match="cca: expected training features that differ"
    ):
        fitted(*rows)
