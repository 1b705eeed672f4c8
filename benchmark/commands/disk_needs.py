"""How much disk a season still needs: from the shapes of its features and the sizes of its models.

Estimated, not measured. Prepared tables, records and reports are small and left out.
"""

import shutil
from math import prod
from pathlib import Path

import torch

from benchmark.commands.data_shapes import SeasonShapes, is_encoded
from benchmark.commands.step_times import Rehearsal, reason_of
from benchmark.data.raw_files import raw_dataset
from benchmark.season.parameters import Cell, FeatureSet, Params

GIB = 2**30
ROWS = {"truths": "phrases", "phrase": "phrases", "sentence": "captions"}  # else one per image
BYTES = {"pixels": 1, "boxes": 4, "words": 4}  # per number of an array; else float16
PARAMETER = 4  # bytes
COPIES = 2  # of a checkpoint: in the cell's folder and in DVC's cache


def disk_needs(params: Params, shapes: SeasonShapes, absent: list[str]) -> dict:
    """GiB by kind, their sum and what is free; and why some sizes are not known, by name.

    `absent` names the datasets whose raw files are missing.
    """
    sizes, unknown = {"features": 0, "checkpoints": 0}, {}
    needs = [("features", _feature_bytes, params.feature_sets)]
    needs.append(("checkpoints", _checkpoint_bytes, params.cells))
    for kind, bytes_of, items in needs:
        for name, item in items.items():
            try:
                sizes[kind] += bytes_of(shapes, item) / GIB
            except Exception as error:  # a method is anyone's code and may raise anything
                unknown[name] = reason_of(error)
    sizes["raw_files"] = sum(raw_dataset(params, name).card.raw_gib for name in absent)
    sizes |= {"needed": sum(sizes.values()), "free": shutil.disk_usage(".").free / GIB}
    return {"gib": {name: float(f"{gib:.3g}") for name, gib in sizes.items()}, "unknown": unknown}


def _feature_bytes(shapes: SeasonShapes, features: FeatureSet) -> int:
    if is_encoded(features):
        return 0
    size = shapes.dataset(features.dataset)
    return sum(
        prod(shape)
        * BYTES.get(array, 2)
        * (size.words if array == "words" else size.total(ROWS.get(array, "images")))
        for array, shape in shapes.arrays(features).items()
    )


def _checkpoint_bytes(shapes: SeasonShapes, cell: Cell) -> int:
    if Path(cell.checkpoint).is_file():
        return 0
    with torch.device("meta"):
        model = Rehearsal(shapes, cell).model()
    return COPIES * PARAMETER * sum(values.numel() for values in model.parameters())
