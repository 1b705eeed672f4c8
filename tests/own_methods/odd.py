"""A small method that fails, or scores strangely, in the way that `how` says."""

import sys
from dataclasses import dataclass

import torch
from torch import nn

from benchmark.contracts.methods import Inputs, Phase


@dataclass(frozen=True, kw_only=True)
class Config:
    how: str = "well"
    epochs: int = 1


def inputs(config):
    return Inputs(image="pooled", text="sentence", fit=config.how == "fit raises")


def recipe(config):
    if config.how == "recipe raises":
        raise RuntimeError("no recipe")
    return [Phase(epochs=config.epochs, learning_rates=(0.01,) * config.epochs, batch_size=4)]


class Model(nn.Module):
    def __init__(self, config, sizes):
        super().__init__()
        self.how = config.how
        if self.how == "built raises":
            raise KeyError("size")
        self.image, self.text = nn.Linear(sizes.image, 4), nn.Linear(sizes.text, 4)

    def fit(self, pairs):
        raise ArithmeticError("singular")

    def encode_images(self, images):
        if self.how == "test raises" and not self.training and len(images) > 5:
            raise IndexError("only five")  # validation has five images, the test split six
        vectors = self.image(images)
        if self.how == "collapsed":
            vectors = vectors * 0 + 1
        if self.how == "nearly collapsed":
            vectors = vectors * 1e-12 + 1
        return (vectors.numpy() if self.how == "numpy" else vectors,)

    def encode_captions(self, captions):
        vectors = self.text(captions.values)
        if self.how == "collapsed":
            vectors = vectors * 0 + 1
        return (vectors,)

    def similarity(self, images, captions):
        if self.how == "evaluation exits" and not self.training:
            sys.exit(3)
        scores = images[0] @ captions[0].T
        return STRANGE.get(self.how, lambda x: x)(scores)

    def loss(self, batch):
        if self.how in FAULTS:
            return FAULTS[self.how]()
        images, texts = self.encode_images(batch.images)[0], self.encode_captions(batch.captions)[0]
        return {"far": (images - texts).square().mean()}


def _raise(error):
    raise error


def _deep():
    return _deep()


FAULTS = {
    "loss raises": lambda: _raise(ValueError("no\nloss")),
    "loss exits": lambda: sys.exit(0),
    "loss asserts": lambda: _raise(AssertionError),
    "loss is deep": _deep,
    "loss is nothing": dict,
    "loss has no gradient": lambda: {"far": torch.tensor(1.0)},
    "loss is no tensor": lambda: {"far": 1.0},
    "loss is a vector": lambda: {"far": torch.ones(3, requires_grad=True)},
    "loss is NaN": lambda: {"far": torch.tensor(float("nan"), requires_grad=True)},
    "loss stops": lambda: _raise(StopIteration),
}
STRANGE = {
    "around 1000": lambda x: 1000 + 1e-4 * torch.tanh(x),
    "around 1e9": lambda x: 1e9 + 1e3 * x,
    "times 3e38": lambda x: 3e38 * torch.tanh(x),
    "times 1e-38": lambda x: 1e-38 * torch.tanh(x),
    "all 3e38": lambda x: torch.full_like(x, 3e38),
    "all equal": torch.zeros_like,
    "two values": lambda x: (x > 0).float(),
    "of all sizes": lambda x: torch.exp(60 * torch.tanh(x)),
    "double": lambda x: x.double(),
    "half": lambda x: x.half(),
    "infinite": lambda x: x / 0,
    "NaN": lambda x: x * float("nan"),
    "transposed": lambda x: x.T,
    "a vector": lambda x: x[0],
    "nothing": lambda x: None,
    "complex": lambda x: x.to(torch.complex64),
}
