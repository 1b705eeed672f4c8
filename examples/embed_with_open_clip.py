"""Embeddings of a test split from a local checkpoint of open_clip, for `score`.

    pip install open_clip_torch
    rematch score --dataset pets --items todo
    python examples/embed_with_open_clip.py todo ViT-B-32 path/to/checkpoint.safetensors
    rematch score --dataset pets --name clip \\
        --images todo/images.npz --captions todo/captions.npz

Checkpoints are .safetensors: files of torch's older formats can run code when they are
loaded.
"""

import argparse
import csv
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from PIL import Image

CHUNK = 64


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "items", type=Path, help="the folder that `score --items` wrote"
    )
    parser.add_argument("model", help="as open_clip calls it")
    parser.add_argument("checkpoint", type=Path)
    given = parser.parse_args(argv)
    if given.checkpoint.suffix != ".safetensors":
        parser.error(f"{given.checkpoint}: expected a .safetensors file")
    open_clip = import_module("open_clip")
    model, _, prepared = open_clip.create_model_and_transforms(
        given.model, pretrained=str(given.checkpoint)
    )
    tokenise = open_clip.get_tokenizer(given.model)
    model.eval()

    def of_pictures(rows: list[dict]) -> torch.Tensor:
        opened = (Image.open(row["path"]).convert("RGB") for row in rows)
        return model.encode_image(
            torch.stack([prepared(picture) for picture in opened])
        )

    def of_texts(rows: list[dict]) -> torch.Tensor:
        return model.encode_text(tokenise([row["text"] for row in rows]))

    save(given.items / "images", "image_id", of_pictures)
    save(given.items / "captions", "caption_id", of_texts)


def save(items: Path, key: str, encode) -> None:
    """Encode the rows of a .csv and save their vectors with their ids as .npz."""
    with items.with_suffix(".csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with torch.inference_mode():
        chunks = [
            encode(rows[n : n + CHUNK]).float() for n in range(0, len(rows), CHUNK)
        ]
    np.savez(
        items.with_suffix(".npz"),
        ids=[row[key] for row in rows],
        vectors=torch.cat(chunks),
    )
    print(f"{items}.npz: {len(rows)} vectors")


if __name__ == "__main__":
    main()
