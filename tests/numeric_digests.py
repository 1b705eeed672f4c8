"""Prints digests of what a season computes, as JSON: test_numerics.py runs it in processes with
other settings. What is random comes from fixed seeds."""

import json
from hashlib import sha256
from io import BytesIO

import benchmark  # noqa: F401  pins the numerics before numpy is imported

# isort: split

import numpy as np
import torch
from gensim.models import Word2Vec
from PIL import Image
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from torch import nn
from torch.nn.functional import interpolate

from benchmark.core.devices import fingerprint_parts
from benchmark.features import drawn_cnn

rng = np.random.default_rng(0)
points = rng.normal(size=(400, 40)).astype(np.float32)
WORDS = [f"w{number}" for number in range(50)]


def training() -> np.ndarray:
    """Weights of a small network after twenty steps of gradient descent, scaled as Adam's first."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.BatchNorm1d(64), nn.Linear(64, 8))
    for step in range(20):  # by hand: an optimiser of torch imports its compiler, for seconds
        loss = network(torch.from_numpy(points[step : step + 64])).square().mean()
        gradients = torch.autograd.grad(loss, list(network.parameters()))
        for weight, gradient in zip(network.parameters(), gradients, strict=True):
            weight.data -= 0.01 * gradient / (gradient.square().sqrt() + 0.001)
    return network[0].weight.detach().numpy()


def picture_features() -> np.ndarray:
    """A JPEG, decoded, resized and described by the network for drawn scenes."""
    pixels = rng.integers(0, 256, (80, 120, 3), dtype=np.uint8).repeat(3, 0).repeat(3, 1)
    file = BytesIO()
    Image.fromarray(pixels).save(file, "jpeg")
    picture = torch.from_numpy(np.array(Image.open(file))).permute(2, 0, 1)[None]
    small = interpolate(picture, (96, 96), mode="bilinear", antialias=True).float() / 255
    torch.manual_seed(0)
    with torch.inference_mode():
        return drawn_cnn.Network(width=8).eval()(small)[0].numpy()


def word_vectors() -> np.ndarray:
    sentences = [list(rng.choice(WORDS, 8)) for _ in range(200)]
    model = Word2Vec(sentences, vector_size=16, min_count=1, workers=1, seed=1, hashfxn=len)
    return model.wv[sorted(model.wv.index_to_key)]


def main() -> None:
    arrays = {
        "training": training(),
        "k-means": KMeans(12, n_init=1, random_state=0).fit(points).cluster_centers_,
        "pca": PCA(8, random_state=0).fit_transform(points),
        "word vectors": word_vectors(),
        "picture features": picture_features(),
    }
    digests = {name: sha256(array.tobytes()).hexdigest() for name, array in arrays.items()}
    print(json.dumps(fingerprint_parts() | digests))


if __name__ == "__main__":
    main()
