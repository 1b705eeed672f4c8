"""Someone's own folder: how many images are for validation and test."""

import json
from collections import Counter
from pathlib import Path

from refusals import refused

from benchmark.contracts.datasets import folder
from benchmark.contracts.datasets.folder import Options

ROWS = [
    {"image": "a.png", "captions": ["One a.", " Two  a. "], "split": "train"},
    {"image": "sub/b.png", "caption": "A b.", "split": "val", "group": "pair"},
    {"image": "c.png", "caption": 'A c, "quoted".', "split": "test", "id": "see"},
]


def write(raw: Path, rows: list[dict]) -> None:
    (raw / "all.jsonl").write_text("\n".join(map(json.dumps, rows)))


def test_a_number_of_images_for_val_and_test(tmp_path):
    rows = [
        {"image": f"{n}.png", "caption": "x", "group": f"g{n // 2}"} for n in range(20)
    ]
    write(tmp_path, rows)
    images = folder.read(tmp_path, Options(val=2, test=3)).images
    assert Counter(images["split"]) == {"train": 10, "val": 4, "test": 6}
    assert images.groupby("group")["split"].nunique().max() == 1
    fewer = folder.read(tmp_path, Options(val=1, test=2)).images
    assert set(fewer.loc[fewer["split"] == "test", "group"]) < set(
        images.loc[images["split"] == "test", "group"]
    )
    with refused("val and test", "more than 7 + 3", "10"):
        folder.read(tmp_path, Options(val=7, test=3))
    for options in ({"test": 1}, {"test": 0, "val": 1}, {"val": "2", "test": 1}):
        with refused("folder: option"):
            Options(**options)
    write(tmp_path, ROWS)
    with refused("option test", found="annotations"):
        folder.read(tmp_path, Options(val=1, test=1))
