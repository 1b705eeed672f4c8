"""A method that trains an image network, and the vectors of words."""

from dataclasses import dataclass

import torch
from torch import nn

from benchmark.contracts.methods import Inputs, Phase


@dataclass(frozen=True, kw_only=True)
class Config:
    epochs: int = 3
    batch_size: int = 8
    freeze: bool = False
    clusters: float = 0.0


def inputs(config):
    image = "pooled" if config.freeze else "pixels"
    return Inputs(image=image, text="words", word_vectors=True, clusters=config.clusters)


def recipe(config):
    return [
        Phase(
            epochs=config.epochs,
            learning_rates=(0.05,) * config.epochs,
            batch_size=config.batch_size,
            draws="images",
            pool=5,
            rates=(("words.", 0.0), ("image_network.", 0.1)),
        )
    ]


SEEN = []  # batches, for the tests


class Model(nn.Module):
    def __init__(self, config, sizes, word_vectors=None, image_network=None):
        super().__init__()
        self.words = nn.Embedding(sizes.text, 2)
        if word_vectors is not None:
            self.words.weight.data.copy_(word_vectors)
        self.image, self.text = nn.Linear(sizes.image, 4), nn.Linear(2, 4)
        self.share = nn.Linear(4, sizes.classes) if sizes.classes else None
        self.image_network = image_network

    def encode_images(self, images):
        if self.image_network is not None:
            images = self.image_network(images.float() / 255)[0]
        return (self.image(images),)

    def encode_captions(self, captions):
        return (self.text(self.words(captions.values).mean(1)),)

    def similarity(self, images, captions):
        return images[0] @ captions[0].T

    def loss(self, batch):
        SEEN.append(batch)
        (images,), (texts,) = self.encode_images(batch.images), self.encode_captions(batch.captions)
        own = torch.arange(len(texts), device=texts.device)
        return {
            "rank": nn.functional.cross_entropy(images @ texts.T, own),
            "class": nn.functional.cross_entropy(self.share(images), batch.class_ids),
        }
