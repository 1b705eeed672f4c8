"""Normalised CCA against SciPy's generalised eigenproblem and covariances of NumPy."""

import numpy as np
import pytest
import scipy.linalg
import torch
from region_batches import LOOKS_SIZE, WORDS_SIZE, captions, drawn_pictures, found_in_new_pictures

from methods import Inputs, NotApplicableError, Sizes
from methods import cca as method

ROWS, IMAGE_SIZE, TEXT_SIZE = 400, 7, 5
FREE = 1e-9  # hardly a ridge


def training_rows(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two views of three hidden numbers, far from the origin, with noise."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(ROWS, 3))
    images = hidden @ rng.normal(size=(3, IMAGE_SIZE)) + rng.normal(size=(ROWS, IMAGE_SIZE))
    texts = hidden @ rng.normal(size=(3, TEXT_SIZE)) + rng.normal(size=(ROWS, TEXT_SIZE))
    return images + 20.0, texts * np.arange(1, TEXT_SIZE + 1) - 5.0


def chunks(images: np.ndarray, texts: np.ndarray, size: int = ROWS):
    x, y = torch.from_numpy(images), torch.from_numpy(texts)
    for start in range(0, len(x), size):
        yield x[start : start + size], captions(y[start : start + size])


def fitted(images: np.ndarray, texts: np.ndarray, size: int = ROWS, **options) -> method.Model:
    config = method.Config(**options)
    model = method.Model(config, Sizes(image=images.shape[1], text=texts.shape[1])).double()
    model.fit(chunks(images, texts, size))
    return model


def solved(images: np.ndarray, texts: np.ndarray, regulariser: float):
    """The generalised eigenproblem of both views: correlations, and directions of each view whose
    projections have variance 1, ridge included."""
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


@pytest.mark.parametrize("power", [1.0, 4.0])
@pytest.mark.parametrize("regulariser", [FREE, 0.0001, 0.1])
def test_scores_are_cosines_of_the_scaled_solution(regulariser, power):
    images, texts = training_rows()
    model = fitted(images, texts, regulariser=regulariser, power=power)
    correlations, x_map, y_map = solved(images, texts, regulariser)
    x = (images - images.mean(0)) @ x_map * correlations**power
    y = (texts - texts.mean(0)) @ y_map * correlations**power
    norms = np.linalg.norm(x, axis=1)[:, None] * np.linalg.norm(y, axis=1)
    ((_, batch),) = chunks(images, texts)
    scores = model.similarity(
        model.encode_images(torch.from_numpy(images)), model.encode_captions(batch)
    )
    np.testing.assert_allclose(scores.numpy(), x @ y.T / norms, rtol=1e-6, atol=1e-6)


def test_projections_of_the_training_rows_have_the_canonical_correlations():
    images, texts = training_rows()
    model = fitted(images, texts, regulariser=FREE, power=0.0)
    x, y = images @ model.image_map.numpy(), texts @ model.text_map.numpy()
    correlations = np.corrcoef(x.T, y.T)
    expected, _, _ = solved(images, texts, FREE)
    assert np.all(np.diff(expected) < 0) and expected[2] > 0.5
    np.testing.assert_allclose(np.diag(correlations[:TEXT_SIZE, TEXT_SIZE:]), expected, atol=1e-6)
    for view in (correlations[:TEXT_SIZE, :TEXT_SIZE], correlations[TEXT_SIZE:, TEXT_SIZE:]):
        np.testing.assert_allclose(view, np.eye(TEXT_SIZE), atol=1e-6)
    np.testing.assert_allclose(x.var(0), 1, atol=1e-5)


def test_no_other_projection_correlates_more():
    images, texts = training_rows()
    model = fitted(images, texts, regulariser=FREE, power=0.0)
    x, y = images @ model.image_map.numpy(), texts @ model.text_map.numpy()
    highest = np.corrcoef(x[:, 0], y[:, 0])[0, 1]
    rng = np.random.default_rng(1)
    for _ in range(300):
        a = images @ (model.image_map.numpy()[:, 0] + 0.05 * rng.normal(size=IMAGE_SIZE))
        b = texts @ (model.text_map.numpy()[:, 0] + 0.05 * rng.normal(size=TEXT_SIZE))
        assert np.corrcoef(a, b)[0, 1] < highest


@pytest.mark.parametrize("size", [1, 7, 399])
def test_chunks_change_nothing(size):
    images, texts = training_rows()
    whole, parts = fitted(images, texts).state_dict(), fitted(images, texts, size).state_dict()
    for name, values in whole.items():
        signs = (values * parts[name]).sum(0).sign()  # a direction may point either way
        torch.testing.assert_close(parts[name] * signs, values, rtol=1e-8, atol=1e-8)


def test_moments_of_float32_rows_are_summed_in_float64():
    rng = np.random.default_rng(0)
    rows = (1000.0 + 0.1 * rng.normal(size=(5000, 3))).astype(np.float32)
    mean, covariance = method.moments(torch.from_numpy(rows).split(100))
    exact = rows.astype(np.float64)
    np.testing.assert_allclose(mean.numpy(), exact.mean(0), rtol=1e-12)
    np.testing.assert_allclose(covariance.numpy(), np.cov(exact.T, bias=True), rtol=1e-5)


def test_the_ridge_is_a_part_of_the_largest_eigenvalue():
    covariance = torch.tensor([[5.0, 2.0], [2.0, 2.0]], dtype=torch.float64)  # eigenvalues 6, 1
    expected = torch.tensor([[5.6, 2.0], [2.0, 2.6]], dtype=torch.float64)
    torch.testing.assert_close(method.ridged(covariance, 0.1), expected)


def test_a_dimension_that_never_varies_is_harmless():
    images, texts = training_rows()
    images[:, 2] = 3.0
    model = fitted(images, texts)
    assert all(values.isfinite().all() for values in model.state_dict().values())
    moved = torch.from_numpy(images[:9].copy())
    kept = model.encode_images(moved)[0]
    torch.testing.assert_close(kept.norm(dim=1), torch.ones(9, dtype=torch.float64))


def test_only_the_first_directions_are_kept():
    images, texts = training_rows()
    few, all_ = fitted(images, texts, embedding_size=2), fitted(images, texts)
    assert few.image_map.shape == (IMAGE_SIZE, 2) and all_.text_map.shape == (TEXT_SIZE, TEXT_SIZE)
    assert torch.equal(few.image_map, all_.image_map[:, :2])


def test_a_checkpoint_holds_the_fitted_weights():
    images, texts = training_rows()
    model = fitted(images, texts)
    other = method.Model(model.config, Sizes(image=IMAGE_SIZE, text=TEXT_SIZE)).double()
    other.load_state_dict(model.state_dict())
    x = torch.from_numpy(images)
    assert torch.equal(other.encode_images(x)[0], model.encode_images(x)[0])
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_full_size_maps_are_as_wide_as_the_smaller_side():
    with torch.device("meta"):
        model = method.Model(method.Config(), Sizes(image=4096, text=6000))
    assert sum(x.numel() for x in model.parameters()) == (4096 + 6000) * 4096


def test_half_precision_leaves_the_projections_whole():
    images, texts = (x.astype(np.float32) for x in training_rows())
    model = fitted(images, texts).float()
    x = torch.from_numpy(images)
    with torch.autocast("cpu", torch.bfloat16):
        (projected,) = model.encode_images(x)
    assert torch.equal(projected, model.encode_images(x)[0])


def test_caption_similarity_is_the_cosine_of_sentences():
    images, texts = training_rows()
    model = fitted(images, texts)
    ((_, batch),) = chunks(images, texts)
    (encoded,) = model.encode_captions(batch)
    cosines = model.caption_similarity((encoded[:6],), (encoded,))
    torch.testing.assert_close(cosines, encoded[:6] @ encoded.T)
    torch.testing.assert_close(cosines.diagonal(), torch.ones(6, dtype=torch.float64))


@pytest.mark.parametrize(
    ("pairs", "fed"),
    [
        ("sentence", {"image": "pooled", "text": "sentence"}),
        ("phrase", {"task": "localisation", "image": "proposals", "text": "phrase"}),
    ],
)
def test_pairs_decide_the_inputs(pairs, fed):
    expected = Inputs(**fed, fit=True, caption_similarity=True)
    assert method.inputs(method.Config(pairs=pairs)) == expected


def test_unknown_pairs_are_refused():
    with pytest.raises(ValueError, match="pairs: expected sentence or phrase, found 'words'"):
        method.Config(pairs="words")


def test_nothing_is_trained():
    assert method.recipe(method.Config()) == []
    images, texts = training_rows()
    with pytest.raises(NotImplementedError, match="nothing is trained"):
        fitted(images, texts).loss(drawn_pictures(seed=1))


def test_phrases_of_new_pictures_are_found():
    config = method.Config(pairs="phrase")
    model = method.Model(config, Sizes(image=LOOKS_SIZE, text=WORDS_SIZE))
    batches = [drawn_pictures(seed) for seed in range(1, 6)]
    model.fit((batch.regions, batch.phrases) for batch in batches)
    assert found_in_new_pictures(model) > 0.9  # 0.2 by chance


@pytest.mark.parametrize("side", [0, 1])
def test_features_that_never_change_are_not_applicable(side):
    rows = list(training_rows())
    rows[side] = np.zeros_like(rows[side])
    with pytest.raises(NotApplicableError, match="cca: expected training features that differ"):
        fitted(*rows)
