"""Stage pretrain: weights of the network for drawn scenes, written to
data/weights/drawn_cnn.pt.

    python -m benchmark.encode.drawn_pretraining

The network learns to name what close-ups of single things show. These come from scenes
that no benchmark split contains. It stands apart from the encoder, so that a changed
drawing makes no training on photographs stale.
"""

import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from benchmark.contracts import datasets
from benchmark.core.command_line import ProgressBar, run_stage
from benchmark.core.files import atomic
from benchmark.features.drawn_cnn import CLOSE_UPS, EPOCHS, WEIGHTS, Network

DATASET = "shapes"
SEED, BATCH, RATE = 1, 64, 0.003


def configure(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def main(arguments: argparse.Namespace | None = None) -> None:
    """Pretrain the network and write its weights."""
    with atomic(WEIGHTS) as part:
        # a path would put its random name into the archive
        with part.open("wb") as file:
            torch.save(pretrained().state_dict(), file)


def pretrained() -> Network:
    """The network, trained to name each attribute of the thing in an image with a
    softmax."""
    shapes = datasets.load(DATASET)
    images, answers = zip(*shapes.labelled(CLOSE_UPS, SEED), strict=True)
    pixels = torch.from_numpy(np.stack(list(map(np.asarray, images))))
    pixels = pixels.permute(0, 3, 1, 2)
    labels = torch.from_numpy(np.stack(answers))
    classes = [len(values) for values in shapes.VALUES.values()]
    torch.manual_seed(SEED)
    model = Network().to(memory_format=torch.channels_last).train()
    head = nn.Linear(2 * model.trunk[-1][0].out_channels, sum(classes))
    steps = EPOCHS * (len(pixels) // BATCH)
    optimiser = torch.optim.Adam([*model.parameters(), *head.parameters()], fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps)
    bar = ProgressBar(total=steps, unit="batch", desc="pretrain drawn_cnn")
    for _ in range(EPOCHS):
        batches = torch.randperm(len(pixels)).split(BATCH)
        for rows in batches[: len(pixels) // BATCH]:
            pooled, _ = model(pixels[rows].float() / 255)
            logits = head(pooled).split(classes, 1)
            loss = sum(map(F.cross_entropy, logits, labels[rows].T))
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()
            bar.update()
    bar.close()
    return model.eval()


if __name__ == "__main__":
    raise SystemExit(run_stage(__doc__, configure, main))
