"""Normalised canonical correlation analysis, the baseline of the two-branch networks.

Gong, Ke, Isard, Lazebnik, IJCV 2014, in the form of Klein, Lev, Sadeh, Wolf, CVPR 2015; for regions
and phrases Plummer, Wang, Cervantes, Caicedo, Hockenmaier, Lazebnik, ICCV 2015 (references 23, 2
and 12 of paper 002, whose tables 1 and 2 quote it). Closed form: nothing is drawn, no epochs.
Reference code: CCAModel.m and cca_alg.m of Klein's package and its use by the authors of [12], in
github.com/BryanPlummer/pl-clc at 41ee493, for phrases. Followed where paper 002 is silent:
- both sides are centred, and a ridge is added to each covariance: its largest eigenvalue times
  0.0001 for phrases (the package: 0.001, to be chosen on validation);
- projections are scaled by the canonical correlations themselves (the power is 1; Gong et al.
  take the fourth power of the eigenvalues of another form of the problem, 1 + correlation);
- all projections are kept, as many as the smaller side has dimensions.
Assumed: the same settings for sentences. Not followed: the package takes at most ten random regions
of each distinct phrase; here every pair counts once.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmark.contracts.methods import (
    Batch,
    Captions,
    Encoding,
    Inputs,
    NotApplicableError,
    OptionError,
    Phase,
    RegionBatch,
    Size,
    Sizes,
    Weight,
)
from benchmark.layers.precision import in_float32


@dataclass(frozen=True, kw_only=True)
class Config:
    pairs: str = "sentence"  # tables 1 and 2: images and sentences, or regions and "phrase"
    embedding_size: Size = 4096  # official cca_alg.m: all that the smaller side allows
    regulariser: Weight = 0.0001  # official plClcConfig.m, ccaETA, of the largest eigenvalue
    power: Weight = 1.0  # official RegionPhraseCCA.m: scaled by the correlations

    def __post_init__(self) -> None:
        if self.pairs not in ("sentence", "phrase"):
            raise OptionError("pairs", "sentence or phrase", self.pairs)


def inputs(config: Config) -> Inputs:
    if config.pairs == "phrase":
        return Inputs(
            task="localisation",
            image="proposals",
            text="phrase",
            fit=True,
            caption_similarity=True,
        )
    return Inputs(image="pooled", text="sentence", fit=True, caption_similarity=True)


def recipe(config: Config) -> list[Phase]:
    """Nothing is left to train after `Model.fit`."""
    return []


def moments(chunks: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """Mean (F,) and covariance (F, F), in float64, of rows (n, F) that come in chunks."""
    count, total, products = 0, 0.0, 0.0
    for chunk in chunks:
        rows = chunk.double()
        count += len(rows)
        total = total + rows.sum(0)
        products = products + rows.T @ rows
    mean = total / count
    return mean, products / count - torch.outer(mean, mean)


def canonical(
    xx: Tensor, yy: Tensor, xy: Tensor, regulariser: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Canonical directions of two sides as columns (X, D) and (Y, D), and their correlations (D,),
    the highest first, from covariances (X, X), (Y, Y) and (X, Y), the first two with a ridge. The
    projections have variance 1, ridge included."""
    x_factor, y_factor = (torch.linalg.cholesky(ridged(side, regulariser)) for side in (xx, yy))
    whitened = torch.linalg.solve_triangular(x_factor, xy, upper=False)
    whitened = torch.linalg.solve_triangular(y_factor, whitened.T, upper=False).T
    u, correlations, v = torch.linalg.svd(whitened, full_matrices=False)
    x_directions = torch.linalg.solve_triangular(x_factor.T, u, upper=True)
    y_directions = torch.linalg.solve_triangular(y_factor.T, v.T, upper=True)
    return x_directions, y_directions, correlations


def ridged(covariance: Tensor, regulariser: float) -> Tensor:
    """With `regulariser` times the largest eigenvalue added to the diagonal."""
    largest = torch.linalg.eigvalsh(covariance)[-1]
    return covariance + regulariser * largest * torch.eye(len(covariance)).to(covariance)


def projected(rows: Tensor, mean: Tensor, directions: Tensor) -> Tensor:
    """Unit vectors, in full precision: directions of little variance are long, and their
    products cancel."""
    with torch.autocast(rows.device.type, enabled=False):
        return F.normalize((rows - mean) @ directions, dim=-1)


class Model(nn.Module):
    """Two linear maps into one space. Encodings: unit vectors (I, D) and (C, D)."""

    def __init__(self, config: Config, sizes: Sizes) -> None:
        super().__init__()
        self.config = config
        self.size = min(config.embedding_size, sizes.image, sizes.text)
        self.register_buffer("image_mean", torch.zeros(sizes.image))
        self.register_buffer("text_mean", torch.zeros(sizes.text))
        self.image_map = _not_trained(sizes.image, self.size)
        self.text_map = _not_trained(sizes.text, self.size)

    def fit(self, pairs: Iterable[tuple[Tensor, Captions]]) -> None:
        """Weights from all matched rows, in chunks: images (n, F) and their captions.

        Raises NotApplicableError for rows that are all alike.
        """
        both = (torch.cat([images, captions.values], dim=1) for images, captions in pairs)
        mean, covariance = moments(both)
        x, y = slice(len(self.image_mean)), slice(len(self.image_mean), None)
        try:
            x_directions, y_directions, correlations = canonical(
                covariance[x, x], covariance[y, y], covariance[x, y], self.config.regulariser
            )
        except torch.linalg.LinAlgError as error:
            raise NotApplicableError(
                "cca: expected training features that differ, found a covariance without inverse"
            ) from error
        scale = correlations[: self.size] ** self.config.power
        self.image_mean.copy_(mean[x])
        self.text_mean.copy_(mean[y])
        self.image_map.copy_(x_directions[:, : self.size] * scale)
        self.text_map.copy_(y_directions[:, : self.size] * scale)

    def encode_images(self, images: Tensor) -> Encoding:
        return (projected(images, self.image_mean, self.image_map),)

    def encode_captions(self, captions: Captions) -> Encoding:
        return (projected(captions.values, self.text_mean, self.text_map),)

    @in_float32
    def similarity(self, images: Encoding, captions: Encoding) -> Tensor:
        """Cosine, shape (I, C)."""
        return images[0] @ captions[0].T

    @in_float32
    def caption_similarity(self, captions: Encoding, others: Encoding) -> Tensor:
        """Cosine of sentences, shape (C, C)."""
        return captions[0] @ others[0].T

    def loss(self, batch: Batch | RegionBatch) -> dict[str, Tensor]:
        """Raises NotImplementedError: `fit` leaves nothing to train."""
        raise NotImplementedError("cca: expected a recipe without phases, nothing is trained")


def _not_trained(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape), requires_grad=False)
