"""Scores that do not follow from a picture and a text alone: `how` says from what they do."""

from dataclasses import dataclass

import torch
from torch import nn

from benchmark.contracts.methods import Inputs, Phase


@dataclass(frozen=True, kw_only=True)
class Config:
    how: str = "pair"  # or "rows", "chance", "batch", "tile", "sentences"


def inputs(config):
    return Inputs(image="pooled", text="sentence", caption_similarity=config.how == "sentences")


def recipe(config):
    return [Phase(epochs=1, learning_rates=(0.01,), batch_size=4)]


class Model(nn.Module):
    def __init__(self, config, sizes):
        super().__init__()
        self.how = config.how
        self.image, self.text = nn.Linear(sizes.image, 4), nn.Linear(sizes.text, 4)
        self.norm = nn.BatchNorm1d(4, affine=False)
        self.seen = {"images": 0, "captions": 0}

    def encode_images(self, images):
        return self.encoded(self.image(images), "images")

    def encode_captions(self, captions):
        return self.encoded(self.text(captions.values), "captions")

    def encoded(self, vectors, kind):
        if self.how == "batch" and len(vectors) > 1:
            vectors = self.norm.train()(vectors)
        place = torch.arange(len(vectors)) + self.seen[kind]
        self.seen[kind] += len(vectors)
        return vectors, place.float()

    def similarity(self, images, captions):
        scores = images[0] @ captions[0].T
        if self.how == "rows":  # caption 2 n and 2 n + 1 are of image n, in the order of the file
            scores = -(images[1][:, None] - captions[1][None] // 2).abs()
        if self.how == "chance":
            scores = torch.rand(scores.shape)
        if self.how == "tile":
            scores = scores - scores.mean()
        return scores

    def caption_similarity(self, captions, others):
        return torch.rand(len(captions[0]), len(others[0]))

    def loss(self, batch):
        (images, _), (texts, _) = (
            self.encode_images(batch.images),
            self.encode_captions(batch.captions),
        )
        return {"far": (images - texts).square().mean()}
