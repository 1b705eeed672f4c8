"""Features of pictures from any classifier of torchvision, for a season to import.

    python examples/encode_with_torchvision.py squeezenet1_1 weights/squeezenet1_1.pth \\
        raw/pictures.zip raw/squeezenet1_1.npy

The season `squeezenet` reads features that were made so. By now `rematch encode` makes those of all
these networks itself; the file shows how to bring features of any other one:

    image: {network: squeezenet1_1, features: squeezenet1_1.npy, standardise: true}

A picture becomes 36 regions, the cells of a 6 x 6 grid, averaged with those of its mirror image, as
`rematch encode` makes them. Weights are a state dict of plain tensors: others could run code.
"""

import argparse
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import benchmark  # noqa: F401, isort: skip  # before torch, so that all processors give the same bytes

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn
from torchvision import models
from tqdm import tqdm

BATCH, SIDE, GRID = 64, 224, 6
MEAN = torch.tensor((0.485, 0.456, 0.406)).view(3, 1, 1)  # of ImageNet, RGB values in [0, 1]
STD = torch.tensor((0.229, 0.224, 0.225)).view(3, 1, 1)
ENDINGS = (".jpg", ".jpeg", ".png")
# Families whose `features` end in a map (B, F, h, w); Swin has other axes, ResNet no `features`.
FAMILIES = ("alexnet", "convnext", "densenet", "efficientnet", "mobilenet", "squeezenet", "vgg")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("network", help=f"as torchvision calls it, one of {', '.join(FAMILIES)}")
    parser.add_argument("weights", type=Path, help="its state dict")
    parser.add_argument("pictures", type=Path, help="a .zip, which is read in place")
    parser.add_argument("out", type=Path, help="the .npy to write; <name>_ids.txt comes beside it")
    given = parser.parse_args(argv)
    if not given.network.startswith(FAMILIES):
        parser.error(f"expected a network of {', '.join(FAMILIES)}, found {given.network!r}")
    network = trunk(given.network, given.weights)
    with zipfile.ZipFile(given.pictures) as archive:
        names = sorted(n for n in archive.namelist() if n.lower().endswith(ENDINGS))
        if not names:
            parser.error(f"{given.pictures}: expected pictures ({', '.join(ENDINGS)}), found none")
        write(given.out, names, encoded(network, archive, names))


def trunk(name: str, weights: Path) -> nn.Module:
    """The layers up to the feature map, in evaluation mode."""
    model = models.get_model(name, weights=None)
    model.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    return model.features.eval().requires_grad_(False)


@torch.inference_mode()
def encoded(
    network: nn.Module, archive: zipfile.ZipFile, names: list[str]
) -> Iterator[tuple[int, np.ndarray]]:
    """The row of the first picture and the regions (B, 36, F) of each batch."""
    for start in tqdm(range(0, len(names), BATCH), desc="encode", unit="batch"):
        pixels = torch.stack([read(archive, name) for name in names[start : start + BATCH]])
        mirrored = cells(network, pixels.flip(3)).flip(3)
        grid_BFgg = (cells(network, pixels) + mirrored) / 2
        yield start, grid_BFgg.flatten(2).transpose(1, 2).numpy().astype(np.float16)


def read(archive: zipfile.ZipFile, name: str) -> Tensor:
    """A picture (3, SIDE, SIDE), squashed: captions may describe its margins."""
    with archive.open(name) as file:
        picture = Image.open(file).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1) / 255
    return (pixels - MEAN) / STD


def cells(network: nn.Module, pixels: Tensor) -> Tensor:
    """The mean of the feature map in each cell, (B, F, GRID, GRID)."""
    return F.adaptive_avg_pool2d(network(pixels), GRID)


def write(out: Path, names: list[str], blocks: Iterator[tuple[int, np.ndarray]]) -> None:
    """Write the .npy a block at a time, and the ids: names without folders and endings. A file
    that has its name is complete."""
    part, array = out.with_suffix(".part"), None
    for start, regions in blocks:
        if array is None:
            shape = (len(names), *regions.shape[1:])
            array = np.lib.format.open_memmap(part, "w+", np.float16, shape)
        array[start : start + len(regions)] = regions
    array.flush()
    ids = "\n".join(PurePosixPath(name).stem for name in names)
    out.with_name(f"{out.stem}_ids.txt").write_text(f"{ids}\n", encoding="utf-8")
    os.replace(part, out)
    print(f"{out}: {array.shape[0]} pictures, {array.shape[1]} regions of {array.shape[2]} numbers")


if __name__ == "__main__":
    main()
