"""A fingerprint of this machine's numerics: digests of a fixed set of computations.

Two machines with the same fingerprint give the same bytes for the kernels that are tried here, and
with them, as far as was seen, for whole seasons; with different ones no repetition can be expected
to agree.
"""

from collections.abc import Iterable
from functools import cache, partial
from hashlib import sha256

import numpy as np
import scipy.linalg
import scipy.special
import torch
from torch import Tensor, nn
from torch.nn import functional

DIGITS = 12  # of a digest, hexadecimal
SIZES = (7, 64, 300)  # of products: odd, a power of two, a sentence vector


def fingerprint() -> str:
    """One digest of all computations."""
    return _digest(f"{name} {digest}".encode() for name, digest in fingerprint_parts().items())


@cache
def fingerprint_parts() -> dict[str, str]:
    """What was computed -> digest of its bytes."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # of the weights that layers start with
        tensors = {"torch products": _products()} | _trained() | _others()
    arrays = {name: [x.detach().numpy() for x in of] for name, of in tensors.items()}
    arrays |= {"numpy": _numpy(), "scipy": _scipy()}
    return {name: _digest(array.tobytes() for array in of) for name, of in arrays.items()}


def _digest(chunks: Iterable[bytes]) -> str:
    return sha256(b"".join(chunks)).hexdigest()[:DIGITS]


def _uniform(*shape: int) -> np.ndarray:
    """Float32 numbers in [-1, 1): the same for the same shape, exact on every machine."""
    return (2 * np.random.default_rng(shape).random(shape, dtype=np.float32) - 1).astype(np.float32)


def _tensor(*shape: int) -> Tensor:
    return torch.from_numpy(_uniform(*shape))


def _products() -> list[Tensor]:
    plain = [_tensor(rows, 300) @ _tensor(300, columns) for rows in SIZES for columns in SIZES]
    batched = torch.einsum("brd,bwd->brw", _tensor(8, 36, 64), _tensor(8, 11, 64))
    double = _tensor(64, 300).double() @ _tensor(300, 64).double()
    return [*plain, batched, double, functional.normalize(_tensor(64, 300))]


def _trained() -> dict[str, list[Tensor]]:
    """Layers forward and backward: as in an image network and a text CNN, and recurrent ones."""
    convolutions, recurrence = [], []
    for shape, layer in (
        ((4, 3, 32, 32), nn.Conv2d(3, 16, 3, stride=2, padding=1, bias=False)),
        ((4, 16, 16, 16), nn.Conv2d(16, 16, 3, padding=1, groups=16)),
        ((4, 64, 1, 16), nn.Conv2d(64, 32, (1, 2))),
    ):
        pixels = _tensor(*shape).requires_grad_()
        maps = functional.relu(functional.batch_norm(layer(pixels), None, None, training=True))
        maps.square().sum().backward()
        convolutions += [maps, pixels.grad, layer.weight.grad]
    lengths = torch.tensor([9, 7, 7, 5, 3, 1])
    words = nn.utils.rnn.pack_padded_sequence(_tensor(6, 9, 20), lengths, batch_first=True)
    for layer in (nn.GRU(20, 32, bidirectional=True), nn.LSTM(20, 32)):
        states = layer(words)[0].data
        states.square().sum().backward()
        recurrence += [states, layer.weight_ih_l0.grad, layer.weight_hh_l0.grad]
    return {"torch convolutions": convolutions, "torch recurrence": recurrence}


def _others() -> dict[str, list[Tensor]]:
    x = _tensor(37, 101)
    positive = x.abs() + 0.1
    sums = [x.softmax(1), x.logsumexp(0), x.norm(dim=1), x.sum(0), x.mean(), x.std(), x.cumsum(1)]
    functions = [*sums, x.exp(), x.tanh(), x.sigmoid(), positive.log(), positive.rsqrt()]
    tall = _tensor(64, 40).double()
    gram = tall.T @ tall
    decompositions = [*torch.linalg.eigh(gram), torch.linalg.svdvals(tall)]
    decompositions.append(torch.linalg.cholesky(gram))
    weights = []  # two steps each, fused: sqrt, which other optimisers take, is MKL's
    for optimiser in (torch.optim.Adam, partial(torch.optim.SGD, lr=0.1, momentum=0.9)):
        weights.append(nn.Parameter(_tensor(37, 101)))
        step = optimiser(weights[-1:], fused=True)
        for power in (2, 3):
            weights[-1].grad = x**power
            step.step()
    pixels = (128 * (_tensor(1, 3, 61, 83) + 1)).to(torch.uint8)
    resize = partial(functional.interpolate, size=(32, 32), mode="bilinear", antialias=True)
    return {
        "torch functions": functions,
        "torch decompositions": decompositions,
        "torch optimisers": weights,
        "torch pictures": [resize(pixels), resize(pixels.float())],
    }


def _numpy() -> list[np.ndarray]:
    x = _uniform(64, 300)
    square = x.astype(np.float64) @ x.T.astype(np.float64)
    positive = np.abs(square) + 1
    single = [np.exp(x), np.log(np.abs(x) + 1), np.sin(x), np.sqrt(np.abs(x)), x.astype(np.float16)]
    double = [np.exp(square), np.log(positive), np.power(positive, 0.3), *np.linalg.eigh(square)]
    return [x @ x.T, square, *single, *double, x.sum(0), x.mean(1), x.std()]


def _scipy() -> list[np.ndarray]:
    x = _uniform(40, 60).astype(np.float64)
    left, right = x @ x.T, x[:, :40] @ x[:, :40].T + np.eye(40)
    functions = [scipy.special.logsumexp(x, axis=1), scipy.special.gammaln(np.abs(x) + 1)]
    return [*scipy.linalg.eigh(left, right), scipy.linalg.svdvals(x), *functions]
