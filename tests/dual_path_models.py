"""Tiny dual-path models and their inputs, and what the loops of the oracle make of them."""

import numpy as np
import torch
from oracles import dual_path as naive
from torch import Tensor, nn

from benchmark.contracts.methods import Batch, Captions, Sizes
from benchmark.contracts.methods import dual_path as method

IMAGE_SIZE, VOCABULARY, CLASSES, LENGTH = 6, 11, 5, 8
TINY = {
    "blocks": "2,1,2,1",
    "text_width": 1 / 64,
    "text_length": LENGTH,
    "word_size": 5,
    "hidden_size": 6,
    "image_hidden_size": 7,
    "embedding_size": 4,
}
OFFICIAL = {"text_pooling": "max", "text_layers": 1, "trailing_norm": True}
STAGE_2 = {"stage": 2, "lambda1": 1.0}
PIXELS = 16  # cropped to 14


class TinyNetwork(nn.Module):
    """Pixels in [0, 1] to pooled features and a map, with a batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, IMAGE_SIZE, 3)
        self.norm = nn.BatchNorm2d(IMAGE_SIZE)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        maps = self.norm(self.convolution(pixels)).relu()
        corner = maps[:, :, 0, 0]  # so that a mirror image is another
        return maps.mean((2, 3)) + corner, maps


def model_of(**options) -> method.Model:
    """A tiny model in float64, in training mode, with batch norms that have seen something."""
    torch.manual_seed(0)
    config = method.Config(**TINY | options)
    network = TinyNetwork() if config.stage == 2 else None
    sizes = Sizes(image=IMAGE_SIZE, text=VOCABULARY, classes=CLASSES)
    model = method.Model(config, sizes, image_network=network).double()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
                for values in (module.running_var, module.weight):
                    values.copy_(torch.rand(values.shape, generator=generator) + 0.5)
                for values in (module.running_mean, module.bias):
                    values.copy_(torch.rand(values.shape, generator=generator) - 0.5)
    return model


def captions_of(lengths: list[int], seed: int = 1) -> Captions:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(1, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    counts = torch.tensor(lengths)
    return Captions(values=values * (torch.arange(max(lengths)) < counts[:, None]), lengths=counts)


def images_of(count: int, seed: int = 2) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, IMAGE_SIZE, generator=generator, dtype=torch.float64)


def pixels_of(count: int, seed: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    shape = (count, 3, PIXELS, PIXELS)
    return torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)


def batch_of(images: Tensor, **fields) -> Batch:
    """Five rows, each of an image and a class of its own."""
    facts = {"captions": captions_of([3, 8, 1, 5, 10]), "group_ids": torch.tensor([7, 2, 9, 4, 5])}
    return Batch(images=images, **facts | {"class_ids": torch.tensor([1, 0, 4, 2, 3])} | fields)


def plain(x: Tensor) -> np.ndarray:
    return x.detach().numpy()


def facts_of(norm: nn.BatchNorm1d) -> tuple:
    values = (norm.running_mean, norm.running_var, norm.weight, norm.bias)
    return (*map(plain, values), norm.eps)


def naive_head(x, head: nn.Sequential):
    for layer in head:
        if isinstance(layer, nn.Linear):
            x = naive.affine(plain(layer.weight), x)
        elif isinstance(layer, nn.BatchNorm1d):
            x = naive.batch_norm(x, facts_of(layer))
        else:
            x = naive.relu(x)
    return x


def naive_text(model: method.Model, words: list[int], offset: int):
    """f_text of one sentence, its first word at `offset`, by the loops of the oracle."""
    config, table = model.config, plain(model.words.weight)
    ids = naive.place(words, offset, config.text_length)
    xs = [naive.batch_norm(table[i], facts_of(model.word_norm)) for i in ids]
    blocks = iter(model.text_cnn)
    for depth, stride in zip(config.blocks.split(","), (1, 2, 2, 1), strict=True):
        for first in [True] + [False] * (int(depth) - 1):
            block = next(blocks)
            layers = [*block.residual, *(block.shortcut if first else ())]
            weights = [plain(x.weight) for x in layers if isinstance(x, nn.Conv1d)]
            norms = [facts_of(x) for x in layers if isinstance(x, nn.BatchNorm1d)]
            xs = naive.block(xs, weights, norms, stride if first else 1, first)
    pool = {"average": naive.average, "max": naive.maximum}[config.text_pooling]
    return naive_head(pool(xs), model.text_head)


def words_of(captions: Captions, c: int) -> list[int]:
    return captions.values[c, : captions.lengths[c]].tolist()


def unit(x) -> np.ndarray:
    return np.asarray(x) / np.sqrt(np.square(x).sum())
