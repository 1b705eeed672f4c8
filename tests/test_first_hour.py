"""The README's blocks run in their order, as a newcomer runs them: the demo, a folder
of images, a method, embeddings and questions. Only sizes, presets and the image network
are changed."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image
from test_documents import commands_of_bash_blocks, text_of

from benchmark.__main__ import main
from benchmark.commands import tasks
from benchmark.contracts import datasets
from benchmark.encode import drawn_pretraining
from seasons import clone

SECTIONS = ("First steps", "Your images", "Your method", "Your embeddings", "Questions")
DEMO, PETS = (Path(f"seasons/{name}/season.yaml") for name in ("demo", "pets"))
IMAGE = {"network": "drawn_cnn", "input_size": 96, "flip": False}
SMALL_DEMO = {
    "title": "Demo",
    "datasets": {
        "shapes": {
            "options": {"train": 48, "val": 12, "test": 20},
            "image": IMAGE,
            "words": {"size": 8},
        }
    },
    "presets": ["scan_t2i_avg"],
    "seeds": [0],
    "device": "cpu",
    "options": {"scan": {"embedding_size": 8, "word_size": 8, "epochs": 1}},
}
SMALL_PETS = {
    "presets": ["two_branch_bidirectional", "cca"],
    "seeds": [0],
    "seeds_of": {},
    "options": {
        "two_branch_embedding": {"epochs": 1, "hidden_size": 8, "embedding_size": 4}
    },
}


def in_this_process(
    named, jobs, gpus=(), is_stale=lambda name: True, ended=lambda name: ""
):
    """As `tasks.run_all`, without other processes: these would pretrain at full
    length."""
    for name, task in named.items():
        if is_stale(name):
            tasks.call(task)
            assert not ended(name)
    return {}


@pytest.fixture
def newcomer(tmp_path, monkeypatch):
    """A clone with a small demo, images in path/to/pets with COCO's captions, and
    x.jpg."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(drawn_pretraining, "CLOSE_UPS", 64)
    monkeypatch.setattr(drawn_pretraining, "EPOCHS", 1)
    monkeypatch.setattr(tasks, "run_all", in_this_process)
    clone()
    DEMO.parent.mkdir(parents=True)
    DEMO.write_text(yaml.safe_dump(SMALL_DEMO))
    draw(Path("path/to/pets"))
    Image.new("RGB", (40, 30), (9, 200, 9)).save("x.jpg")


def draw(folder: Path) -> None:
    folder.mkdir(parents=True)
    images, captions = [], []
    for number, colour in enumerate(
        np.random.default_rng(0).integers(0, 256, (24, 3)).tolist()
    ):
        Image.new("RGB", (40, 30), tuple(colour)).save(folder / f"{number}.png")
        images.append({"id": number, "file_name": f"{number}.png"})
        text = "a dog coloured " + " ".join(map(str, colour))
        captions += [{"image_id": number, "caption": f"{text} {n}"} for n in range(2)]
    content = {"images": images, "annotations": captions}
    (folder / "captions.json").write_text(json.dumps(content))


def write_coco(images: int) -> None:
    """Karpathy's file of so many test images with five captions each, and embeddings of
    them."""
    listed = [
        {"filename": f"{number}.jpg", "split": "test", "cocoid": number}
        | {"sentences": [{"raw": "a dog", "sentid": 10 * number + n} for n in range(5)]}
        for number in range(1, images + 1)
    ]
    Path("dataset_coco.json").write_text(json.dumps({"images": listed}))
    for file, rows in (("a.npy", images), ("b.npy", 5 * images)):
        np.save(file, np.random.default_rng(rows).normal(size=(rows, 4)))


def edit_season_file(changes: dict) -> None:
    PETS.write_text(yaml.safe_dump(yaml.safe_load(PETS.read_text()) | changes))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_readme_runs_as_it_is_printed(newcomer, capsys, monkeypatch):
    readme, said = text_of("README.md"), {}
    assert main(["season", "demo"]) == main(["play"]) == 0
    for heading in SECTIONS:
        (section,) = re.findall(
            rf"^## {heading}$(.*?)^## ", readme, re.MULTILINE | re.DOTALL
        )
        for command, *words in commands_of_bash_blocks(section):
            if command != "rematch":
                assert [command, *words] == [".", ".venv/bin/activate"]
                continue
            line = " ".join(words)
            if line == "play" and heading == "Your images":  # after init
                pets = yaml.safe_load(PETS.read_text())["datasets"]["pets"]
                pets |= {"image": IMAGE, "words": {"size": 8}}
                pets |= {"sentence": {"hglmm": {"centres": 2, "size": 6}}}
                edit_season_file(SMALL_PETS | {"datasets": {"pets": pets}})
            if line == "play" and heading == "Your method":
                blocks = re.findall(
                    r"^```yaml\n(.*?)^```$", section, re.MULTILINE | re.DOTALL
                )
                presets, at_end = map(yaml.safe_load, blocks)
                edit_season_file(at_end | {"presets": SMALL_PETS["presets"] + presets})
                edit_season_file(
                    {"options": SMALL_PETS["options"] | {"own*": {"epochs": 1}}}
                )
            if line.startswith("score") and "--name" in line:
                for name, file in (("images", "a.npy"), ("captions", "b.npy")):
                    rows = len(pd.read_csv(f"todo/{name}.csv"))
                    np.save(file, np.random.default_rng(1).normal(size=(rows, 4)))
            if line.startswith("score --dataset mscoco"):
                monkeypatch.setitem(datasets.load("mscoco").IMAGES[True], "test", 10)
                write_coco(10)
            capsys.readouterr()
            assert main(words) == 0, line
            said[line] = capsys.readouterr().out
    assert "1 of 1 identical" in said["verify demo --only *scan_t2i_avg*"]
    assert "24 images, 48 captions" in said["init path/to/pets"]
    assert "keeps the contract" in said["check examples/own_method.py"]
    report = Path("reports/pets/README.md").read_text()
    assert "siglip" in report and "Own method" in report
    leaderboard = said["export pets/leaderboard --format latex"]
    assert "siglip" in leaderboard and "Own method" in leaderboard
    for line in (
        "query two_branch_bidirectional a black dog runs on the beach",
        "query two_branch_bidirectional --image x.jpg",
    ):
        assert re.search(r"   1\. +-?\d\.\d+ +\d+\.png +a dog coloured", said[line])
    (told,) = (
        text for line, text in said.items() if line.startswith("score --dataset mscoco")
    )
    assert (
        "10 images, 50 captions" in told
        and "own, mean of 5 folds: t2i, 50 queries" in told
    )
    assert "won" in said["compare two_branch_bidirectional cca"]
    assert Path(".scratch/site/pets/index.html").is_file()
