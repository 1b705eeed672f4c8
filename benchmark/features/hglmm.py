"""A caption as the Fisher vector of its words under a hybrid Gaussian-Laplacian mixture
(HGLMM).

Klein, Lev, Sadeh, Wolf, CVPR 2015; used by papers 002 (Sections 4.3, 5.3) and 003
(Table 6.6). Reference code: Klein's package in github.com/BryanPlummer/pl-clc at
41ee493.

Words. Vectors of unit length -> independent components (ICA) -> unit length, times
SCALE.

Mixture. p(x) = sum_k pi_k prod_d f_kd(x_d), where each f_kd (of component k and dimension d) is
Gaussian or Laplacian, whichever is more likely. EM over V words, with w_n = p(k | x_n) and
W = sum_n w_n:
    prior      pi_k = W / V
    Gaussian   mu = sum w x / W           sigma^2 = sum w (x - mu)^2 / W
    Laplacian  m = weighted median of x   s = sum w |x - m| / W
m minimises sum w |x - m|, whose slope in m is the weight below m minus the weight above it. Both
scales maximise a function with a single peak, so that with a floor the best scale is the larger of
peak and floor. Each step maximises the expected log-likelihood: EM never lowers the likelihood.

Fisher vector. The gradient of sum_n log p(x_n) over N words, that of each parameter divided by the
root of its Fisher information. If each word belongs to one component only, that information is
M = N pi_k times the expected square of the derivative of the component's log-density:
    d/dmu     (x - mu) / sigma^2               M / sigma^2     E[u^2] = 1
    d/dsigma  ((x - mu)^2/sigma^2 - 1)/sigma   2 M / sigma^2   E[(u^2 - 1)^2] = 2
    d/dm      sign(x - m) / s                  M / s^2         E[sign^2] = 1
    d/ds      (|x - m|/s - 1) / s              M / s^2         |x - m|/s is Exp(1): variance 1
With p_n = p(k | x_n) and u = (x - mu) / sigma, component k gives
    Gaussian   sum p_n u_n / sqrt(M)             then  sum p_n (u_n^2 - 1) / sqrt(2 M)
    Laplacian  sum p_n sign(x_n - m) / sqrt(M)   then  sum p_n (|x_n - m|/s - 1) / sqrt(M)
all locations first (component by component), then all scales: 2 x 30 x 300 = 18,000 numbers. Then
the signed square root, unit length, and PCA to 6,000.

As in the reference code (HybridEM.m, Hybrid.cpp, FV.cpp): 10 iterations of EM, FLOOR,
SCALE. EM starts with uniform priors, random words as locations, the scales of all
words, and each f_kd Gaussian or Laplacian at random.

Departs from the code:
- ICA and mixture are fitted on the distinct words of the training captions (types, not tokens), not
  on 300,000 random words of Google News. Words are those of benchmark.data.vocabularies.
- PCA is fitted on at most FIT_AT_MOST training captions, so that it fits in memory. Its mean is
  subtracted on every split (CITE's code: of training only); so a caption without known words, whose
  Fisher vector is zero, becomes minus that mean, projected.
- A word at the very m of a Laplacian has no sign (code: plus one). A component that loses all words
  stays where it was (code: divides by zero).

Assumed: SCALE comes last (it only matters relative to FLOOR); randomised PCA with
POWER_ITERATIONS.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import logsumexp
from sklearn.decomposition import PCA, FastICA
from sklearn.exceptions import ConvergenceWarning

from benchmark.core.command_line import ProgressBar
from benchmark.core.errors import UserError
from benchmark.data.feature_folders import Words
from benchmark.data.vocabularies import tokenise
from benchmark.season.parameters import SentenceEncoder

# N words, E dimensions of a word, K components, C captions, V distinct words of them, F
# = 2 K E.
SIZE = 6000  # paper 002, Section 4.3; less if the training captions do not span as much
ITERATIONS = 10  # of EM; reference code
FLOOR = 1e-3  # least sigma^2 and least s; reference code
SCALE = 10.0  # reference code
# assumed; 1.4 GB of Fisher vectors, more than they have dimensions
FIT_AT_MOST = 20_000
POWER_ITERATIONS = 3  # of the randomised PCA; assumed
BLOCK = 1000  # captions or words at once
SEED = 0  # one fit per dataset: cells of different seeds share their features


@dataclass(frozen=True)
class Mixture:
    """K components with independent dimensions; arrays are (K, E), but for `prior`."""

    prior: np.ndarray  # pi, (K,), above 0
    laplacian: np.ndarray  # bool; False is Gaussian
    location: np.ndarray  # m or mu
    scale: np.ndarray  # s or sigma


def encode(
    captions: Sequence[str],
    is_train: np.ndarray,
    words: Words,
    settings: SentenceEncoder,
) -> tuple[np.ndarray, dict]:
    """Vectors (C, size) float32, and facts for the card. Fitted on the training
    captions.

    Raises UserError if they have too few words for the `centres` or for the `size` of
    `settings`.
    """
    tokens = list(map(tokenise, captions))
    ids, weights_CV = _word_weights(tokens, words)
    train = np.flatnonzero(is_train)
    # columns of words that training captions have
    seen = np.unique(weights_CV[train].indices)
    if len(seen) < settings.centres:
        raise UserError(
            "hglmm: centres",
            expected=f"at most {len(seen)}, the known words of the training captions",
            found=settings.centres,
            do="lower it",
        )
    x_VE, ica = _independent(words.vectors[ids].astype(np.float64), seen)
    mixture, likelihoods = fit(x_VE[seen], start(x_VE[seen], settings.centres))
    # A caption's Fisher vector is a sparse sum of the gradients of the distinct words.
    gradients_VF = np.empty((len(x_VE), 2 * mixture.location.size), dtype=np.float32)
    for rows in _blocks(len(x_VE), "gradients hglmm"):
        gradients_VF[rows] = gradients(x_VE[rows], mixture)
    order = np.random.default_rng(SEED).permutation(len(train))
    fitted = train[order[:FIT_AT_MOST]]
    pca = _projection(weights_CV[fitted], gradients_VF, settings.size)
    vectors = np.empty((len(captions), pca.n_components_), dtype=np.float32)
    for rows in _blocks(len(captions), "encode hglmm"):
        fisher_CF = fisher_vectors(weights_CV[rows], gradients_VF)
        vectors[rows] = pca.transform(fisher_CF)
    facts = {
        "fisher_dimensions": gradients_VF.shape[1],
        "words_fitted": len(seen),
        "laplacian_share": float(mixture.laplacian.mean()),
        "largest_prior": float(mixture.prior.max()),
        "log_likelihood": likelihoods[-1],
        "captions_fitted": len(fitted),
        "variance_kept": float(pca.explained_variance_ratio_.sum()),
        "seed": SEED,
    }
    return vectors, words.coverage(tokens) | ica | facts


def _word_weights(
    captions: Sequence[Sequence[str]],
    words: Words,
) -> tuple[np.ndarray, csr_matrix]:
    """Ids (V,) of the known words of tokenised captions, and their weights (C, V): the
    count of a word over the root of the caption's number of known words."""
    ids_C = [words.ids(caption) for caption in captions]
    length_C = np.array([len(ids) for ids in ids_C])
    ids, columns = np.unique(np.concatenate(ids_C), return_inverse=True)
    rows = np.repeat(np.arange(len(captions)), length_C)
    weights = (1 / np.sqrt(length_C[rows])).astype(np.float32)
    shape = (len(captions), len(ids))
    # the weights of a word that a caption repeats are added
    return ids, csr_matrix((weights, (rows, columns)), shape=shape)


def _projection(
    weights_CV: csr_matrix,
    gradients_VF: np.ndarray,
    size: int | None,
) -> PCA:
    """Principal components, `size` of them, of the Fisher vectors of captions to fit
    to."""
    captions = weights_CV.shape[0]
    fisher_CF = np.empty((captions, gradients_VF.shape[1]), dtype=np.float32)
    most = min(fisher_CF.shape)
    if size is not None and size > most:
        raise UserError(
            "hglmm: size",
            expected=f"at most {most}, the least of training captions and dimensions",
            found=size,
            do="lower it or leave it out",
        )
    for rows in _blocks(captions, "fit hglmm"):
        fisher_CF[rows] = fisher_vectors(weights_CV[rows], gradients_VF)
    pca = PCA(
        size or min(SIZE, most),
        svd_solver="randomized",
        iterated_power=POWER_ITERATIONS,
        random_state=SEED,
        copy=False,  # gigabytes
    )
    return pca.fit(fisher_CF)


def _independent(x_VE: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, dict]:
    """Independent components of unit vectors, scaled to the length SCALE, and facts for
    the card.

    Fitted on the rows `seen`. There are as many components as these rows span, which
    may be fewer than E for a tiny vocabulary.
    """
    x_VE = _unit(x_VE)
    fitted = x_VE[seen]
    rank = int(np.linalg.matrix_rank(fitted - fitted.mean(0)))
    if rank == 0:
        raise UserError(
            "hglmm",
            expected="words with different vectors in the training captions",
            found="none",
            do="check the season's `words`",
        )
    ica = FastICA(rank, random_state=SEED, whiten="unit-variance")
    with warnings.catch_warnings():
        # the card has the iterations
        warnings.simplefilter("ignore", ConvergenceWarning)
        ica.fit(fitted)
    facts = {
        "components": rank,
        "ica_iterations": ica.n_iter_,
        "ica_most_iterations": ica.max_iter,
    }
    return SCALE * _unit(ica.transform(x_VE)), facts


def _unit(x: np.ndarray) -> np.ndarray:
    """The rows scaled to unit length; rows of zeros stay zero."""
    norms = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(norms > 0, norms, 1)


# Mixture ------------------------------------------------------------------------------


def start(x_NE: np.ndarray, centres: int) -> Mixture:
    """Equal components around `centres` random words, each dimension of a family at
    random.

    Its scale is that of all words: the mean distance to their median, or their
    deviation.
    """
    rng = np.random.default_rng(SEED)
    chosen = rng.choice(len(x_NE), centres, replace=False)
    laplacian = rng.random((centres, x_NE.shape[1])) < 0.5
    distance_NE = np.abs(x_NE - np.median(x_NE, axis=0))
    s_E = np.maximum(distance_NE.mean(0), FLOOR)
    sigma_E = np.sqrt(np.maximum(x_NE.var(0), FLOOR))
    return Mixture(
        prior=np.full(centres, 1 / centres),
        laplacian=laplacian,
        location=x_NE[chosen],
        scale=np.where(laplacian, s_E, sigma_E),
    )


def fit(x_NE: np.ndarray, mixture: Mixture) -> tuple[Mixture, list[float]]:
    """The mixture after EM from `mixture`, and mean log-likelihoods.

    These are per word, before each of the ITERATIONS and after the last.
    """
    order_EN = np.argsort(x_NE.T, axis=1, kind="stable")
    likelihoods = []
    for _ in ProgressBar(range(ITERATIONS), desc="fit hglmm", unit="iteration"):
        posterior_NK, log_likelihood = expectation(x_NE, mixture)
        likelihoods.append(log_likelihood)
        mixture = maximisation(x_NE, order_EN, posterior_NK, mixture)
    _, log_likelihood = expectation(x_NE, mixture)
    return mixture, [*likelihoods, log_likelihood]


def expectation(x_NE: np.ndarray, mixture: Mixture) -> tuple[np.ndarray, float]:
    """The posterior p(k | x_n), (N, K), and the mean of log p(x_n)."""
    area_KE = mixture.scale * np.where(mixture.laplacian, 2, np.sqrt(2 * np.pi))
    peak_KE = -np.log(area_KE)
    log_NK = np.empty((len(x_NE), len(peak_KE)))  # of prod_d f_kd(x_d)
    # (N, K, E) at once would be gigabytes
    for k, laplacian_E in enumerate(mixture.laplacian):
        u_NE = np.abs(x_NE - mixture.location[k]) / mixture.scale[k]
        fall_NE = np.where(laplacian_E, u_NE, u_NE * u_NE / 2)
        log_NK[:, k] = peak_KE[k].sum() - fall_NE.sum(1)
    joint_NK = log_NK + np.log(mixture.prior)
    evidence_N1 = logsumexp(joint_NK, axis=1, keepdims=True)
    return np.exp(joint_NK - evidence_N1), float(evidence_N1.mean())


def maximisation(
    x_NE: np.ndarray,
    order_EN: np.ndarray,
    posterior_NK: np.ndarray,
    old: Mixture,
) -> Mixture:
    """The most likely priors, and family, location and scale of every component and
    dimension.

    `order_EN` sorts each dimension of x. A component without words keeps what it had,
    and the least prior above 0.
    """
    least = np.finfo(float).tiny
    dimensions = np.arange(len(order_EN))
    laplacian = old.laplacian.copy()
    location = old.location.copy()
    scale = old.scale.copy()
    weight_K = posterior_NK.sum(0)
    for k in np.flatnonzero(weight_K > least):
        w_N = posterior_NK[:, k] / weight_K[k]
        # The weighted median is the least value with half of the weight up to it.
        below_EN = np.cumsum(w_N[order_EN], axis=1)
        place_E = (below_EN < below_EN[:, -1:] / 2).sum(1)
        median_E = x_NE[order_EN[dimensions, place_E], dimensions]
        deviation_E = w_N @ np.abs(x_NE - median_E)
        s_E = np.maximum(deviation_E, FLOOR)
        laplacian_E = -np.log(2 * s_E) - deviation_E / s_E
        mean_E = w_N @ x_NE
        variance_E = w_N @ (x_NE - mean_E) ** 2
        sigma_E = np.sqrt(np.maximum(variance_E, FLOOR))
        gaussian_E = -np.log(np.sqrt(2 * np.pi) * sigma_E)
        gaussian_E -= variance_E / (2 * sigma_E**2)
        laplacian[k] = laplacian_E > gaussian_E
        location[k] = np.where(laplacian[k], median_E, mean_E)
        scale[k] = np.where(laplacian[k], s_E, sigma_E)
    prior = np.maximum(weight_K / len(x_NE), least)
    return Mixture(prior, laplacian, location, scale)


# Fisher vectors -----------------------------------------------------------------------


def gradients(x_NE: np.ndarray, mixture: Mixture) -> np.ndarray:
    """What each word adds to a caption's Fisher vector before the division by sqrt(N),
    (N, F)."""
    K, E = mixture.location.shape
    posterior_NK, _ = expectation(x_NE, mixture)
    scaled_NK = posterior_NK / np.sqrt(mixture.prior)
    parts_N2KE = np.empty((len(x_NE), 2, K, E))
    for k, laplacian_E in enumerate(mixture.laplacian):
        u_NE = (x_NE - mixture.location[k]) / mixture.scale[k]
        first_NE = np.where(laplacian_E, np.sign(u_NE), u_NE)
        gaussian_NE = (u_NE**2 - 1) / np.sqrt(2)
        second_NE = np.where(laplacian_E, np.abs(u_NE) - 1, gaussian_NE)
        scaled_N1 = scaled_NK[:, k, None]
        parts_N2KE[:, 0, k] = scaled_N1 * first_NE
        parts_N2KE[:, 1, k] = scaled_N1 * second_NE
    return parts_N2KE.reshape(len(x_NE), 2 * K * E)


def fisher_vectors(weights_CV: csr_matrix, gradients_VF: np.ndarray) -> np.ndarray:
    """Fisher vectors (C, F): signed roots, of unit length; zero without known words."""
    sums_CF = weights_CV @ gradients_VF
    roots_CF = np.sqrt(np.abs(sums_CF))
    return _unit(np.copysign(roots_CF, sums_CF))


def _blocks(rows: int, title: str) -> ProgressBar:
    """Slices of at most BLOCK rows, with a progress bar."""
    blocks = []
    for first in range(0, rows, BLOCK):
        stop = min(first + BLOCK, rows)
        blocks.append(slice(first, stop))
    return ProgressBar(blocks, desc=title, unit="block")
