"""Methods that are wrong by mistake, or on purpose: `how` says in what way. "pair" is right."""

import os
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from benchmark.contracts.methods import Inputs, Phase

FIRST = {}  # of the module: what all its models see


@dataclass(frozen=True, kw_only=True)
class Config:
    how: str = "pair"
    constant: float = 0.0  # added to all scores in evaluation


def inputs(config):
    return Inputs(image="pooled", text="sentence", caption_similarity=config.how == "sentences")


def recipe(config):
    rate = 0.0 if config.how == "zero rate" else 0.01
    return [Phase(epochs=1, learning_rates=(rate,), batch_size=4)]


class Model(nn.Module):
    def __init__(self, config, sizes):
        super().__init__()
        self.how, self.constant = config.how, config.constant
        if self.how == "seeds itself":
            torch.manual_seed(0)
        self.image, self.text = nn.Linear(sizes.image, 4), nn.Linear(sizes.text, 4)
        if self.how == "own generator":
            for x in self.parameters():
                x.data.normal_(generator=torch.Generator().manual_seed(0))
        if self.how in ("frozen", "unfreezes"):
            self.image.requires_grad_(False)
        if self.how == "drifts":
            self.register_buffer("drift", torch.zeros(4))
        if self.how == "plain list":
            self.layers = [nn.Linear(4, 4)]
        self.norm = nn.BatchNorm1d(4, affine=False)
        self.mean = torch.zeros(4)  # as it should not be kept
        self.forget()

    def forget(self):
        self.seen = {"images": 0, "captions": 0}
        self.first, self.memo, self.known = {}, {}, {"images": {}, "captions": {}}
        self.bank = {"images": [], "captions": []}

    def train(self, mode=True):
        if self.how in ("position", "known order", "split mean", "image bank"):
            self.forget()
        if self.how == "unfreezes":
            self.requires_grad_(mode)
        return super().train(mode)

    def encode_images(self, images):
        return self.encoded(self.image, images, "images")

    def encode_captions(self, captions):
        return self.encoded(self.text, captions.values, "captions")

    def encoded(self, layer, given, kind):
        if self.how == "in place":
            given -= given.mean(1, keepdim=True)
        if self.how == "evaluates":
            self.eval()
        if self.how == "trains":
            self.train()
        if self.how == "seeds encoding":
            torch.manual_seed(0)
        vectors = layer(given)
        if self.how == "drifts" and not self.training:
            self.drift += vectors.mean(0)
        self.bank[kind].append(vectors)
        if self.how == "batch" and len(vectors) > 1:
            vectors = self.norm.train()(vectors)
        if self.how == "gallery" and not self.training:
            vectors = vectors - vectors.mean(0)
        if self.how == "first mean" and not self.training:
            vectors = vectors - self.first.setdefault(kind, vectors.mean(0))
        if self.how == "module" and not self.training:
            vectors = vectors - FIRST.setdefault(kind, vectors.mean(0))
        if self.how == "identity" and not self.training:
            kept = self.memo.setdefault(id(given), vectors)
            vectors = kept if len(kept) == len(vectors) else vectors
        if self.how == "global" and not self.training:
            nn.first_mean = getattr(nn, "first_mean", vectors.mean(0))
            vectors = vectors - nn.first_mean
        if self.how == "file" and not self.training:
            if not os.path.exists("mean.pt"):
                torch.save(vectors.mean(0), "mean.pt")
            vectors = vectors - torch.load("mean.pt")
        if self.how == "threads":
            torch.set_num_threads(3)
        if self.how == "leaves":
            os.chdir("..")
        if self.how == "dropout":
            vectors = F.dropout(vectors)
        if self.how == "plain list":
            vectors = self.layers[0](vectors)
        if self.how == "plain attribute":
            if self.training:
                self.mean = self.mean + 5 * vectors.detach().mean(0)
            vectors = vectors * (1 + self.mean)
        place = torch.arange(len(vectors)) + self.seen[kind]
        self.seen[kind] += len(vectors)
        if self.how == "known order":
            table = self.known[kind]
            place = torch.tensor(
                [table.setdefault(row.numpy().tobytes(), len(table)) for row in given]
            )
        return (vectors, [0]) if self.how == "a list" else (vectors, place.float())

    def similarity(self, images, captions):
        if self.how == "in place scores":
            captions[0].mul_(0.5)
        scores = images[0] @ captions[0].T
        if self.how == "split mean" and not self.training:
            scores = scores - images[0] @ torch.cat(self.bank["captions"]).mean(0)[:, None]
        if self.how == "image bank" and not self.training:
            scores = scores - (torch.cat(self.bank["images"]) @ captions[0].T).amax(0)
        if self.how == "no images":
            scores = captions[0].sum(1).expand(len(images[0]), -1)
        if self.how in ("rows", "position"):  # as if captions 2 n and 2 n + 1 were of image n
            scores = 1 - (images[1][:, None] - captions[1][None] // 2).abs().clamp(max=1)
        if self.how == "known order" and not self.training:
            rng = np.random.default_rng(20170711)
            orders = (rng.permutation(len(self.known[kind])) for kind in ("images", "captions"))
            image, caption = (torch.from_numpy(order) for order in orders)
            own = image[images[1].long()][:, None] == caption[captions[1].long()] // 2
            scores = own.float()
        if self.how == "chance":
            scores = torch.rand(scores.shape)
        if self.how == "tile":
            scores = scores - scores.mean()
        if self.how == "softmax":
            scores = (scores.softmax(0) * scores.softmax(1)).sqrt()
        if self.how == "distance":
            scores = torch.cdist(images[0], captions[0])
        if self.how == "NaN":
            scores[0, 0] = float("nan")
        if self.how == "half":
            scores = scores.half()
        return scores + self.constant * (not self.training)

    def caption_similarity(self, captions, others):
        return torch.rand(len(captions[0]), len(others[0]))

    def loss(self, batch):
        images, texts = self.encode_images(batch.images)[0], self.encode_captions(batch.captions)[0]
        if self.how == "seeds numpy":
            np.random.seed(0)
        if self.how == "cut images":
            images = images.detach()
        if self.how == "cut captions":
            texts = texts.detach()
        if self.how == "rolled":
            texts = texts.roll(1, 0)
        if self.how in ("half rolled", "no images"):
            rows = torch.arange(len(images))
            scores = self.similarity((images,), (texts,))
            other = rows.roll(1) if self.how == "half rolled" else rows
            return {"i2t": F.cross_entropy(scores, rows), "t2i": F.cross_entropy(scores.T, other)}
        if self.how == "only captions":
            return {"far": (texts - 1).square().mean()}
        far = (images - texts).square().mean()
        if self.how == "wrong sign":
            far = 1 / (1 + far)
        if self.how == "numpy":
            far = far * np.random.rand()
        return {"far": far.detach() if self.how == "detached" else far}
