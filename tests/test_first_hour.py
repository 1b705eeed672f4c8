"""The README's blocks run, in their order, as a newcomer runs them: with a folder of pictures, a
method, embeddings and a question. Only sizes and the image network are changed: no download."""

import json
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from documents import ROOT, blocks, commands, section
from dvc_repository import copy_code, repository, start
from PIL import Image
from test_play import InThisProcess

from benchmark.__main__ import main
from benchmark.commands import play
from benchmark.encode import drawn_pretraining

pytestmark = pytest.mark.slow

README = (ROOT / "README.md").read_text(encoding="utf-8")
DVC_PAGE = (ROOT / "docs/dvc.md").read_text(encoding="utf-8")
AUTHOR = ("-c", "user.name=A", "-c", "user.email=a@example.org")
SECTIONS = ("Your pictures", "Your method", "Your embeddings", "Questions")
SEASON = Path("seasons/pets/season.yaml")
ASKED = "query two_branch_bidirectional a black dog runs on the beach"
PICTURES, EACH = 24, 2
PRESETS = ["two_branch_bidirectional", "cca"]
TINY = {
    "two_branch_embedding": {"epochs": 1, "hidden_size": 8, "embedding_size": 4, "batch_size": 4},
    "cca": {},
    "own*": {"epochs": 1},
}


@pytest.fixture
def newcomer(tmp_path, monkeypatch):
    """A clone, pictures in path/to/pets with COCO's captions, and x.jpg."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(drawn_pretraining, "CLOSE_UPS", 64)
    monkeypatch.setattr(drawn_pretraining, "EPOCHS", 1)
    monkeypatch.setattr(play, "Processes", InThisProcess)
    copy_code()
    shutil.copytree(ROOT / "examples", "examples")
    shutil.copy(ROOT / "params.yaml", "params.yaml")
    Path("seasons").mkdir()
    draw(Path("path/to/pets"))
    Image.new("RGB", (40, 30), (9, 200, 9)).save("x.jpg")
    start()


def draw(folder: Path) -> None:
    folder.mkdir(parents=True)
    colours = np.random.default_rng(0).integers(0, 256, (PICTURES, 3))
    files = [f"{number}.png" for number in range(PICTURES)]
    for file, colour in zip(files, colours, strict=True):
        Image.new("RGB", (40, 30), tuple(map(int, colour))).save(folder / file)
    images = [{"id": number, "file_name": file} for number, file in enumerate(files)]
    captions = [
        {"id": 10 * number + n, "image_id": number, "caption": f"a dog with the colour {text} {n}"}
        for number, text in enumerate(" ".join(map(str, colour)) for colour in colours)
        for n in range(EACH)
    ]
    captions_file = {"images": images, "annotations": captions}
    (folder / "captions.json").write_text(json.dumps(captions_file))


def amend(changes: dict) -> None:
    """Change keys of the season file, as an editor does."""
    SEASON.write_text(yaml.safe_dump(yaml.safe_load(SEASON.read_text()) | changes))


def make_small() -> None:
    """What `init` wrote, with few presets, small layers and the network for drawn pictures."""
    pets = yaml.safe_load(SEASON.read_text())["datasets"]["pets"]
    pets |= {"image": {"network": "drawn_cnn", "input_size": 96}, "words": {"size": 8}}
    pets |= {"sentence": {"hglmm": {"centres": 2, "size": 6}}}
    options = {key: TINY[key] for key in ("two_branch_embedding",)}
    amend({"datasets": {"pets": pets}, "presets": PRESETS, "seeds": [0], "seeds_of": {}})
    amend({"options": options})
    assert main(["season", "pets"]) == 0


def add_method() -> None:
    """The blocks of the README, beside what is there."""
    of_list, at_end = map(yaml.safe_load, blocks(section(README, "Your method"), "yaml"))
    amend(at_end | {"presets": [*PRESETS, *of_list]})
    amend({"options": {key: TINY[key] for key in ("two_branch_embedding", "own*")}})


def embed() -> None:
    """Vectors of what `score --items` lists."""
    rng = np.random.default_rng(1)
    for name, file in (("images", "a.npy"), ("captions", "b.npy")):
        np.save(file, rng.normal(size=(len(pd.read_csv(f"todo/{name}.csv")), 4)))


def test_the_readme_runs_as_it_is_printed(newcomer, capsys):
    done, said = [], {}
    for heading in SECTIONS:
        for words in commands(section(README, heading)):
            line = " ".join(words[3:])
            if line == "season pets":
                add_method()
            if line.startswith("score") and "--name" in line:
                embed()
            if line == "site" and find_spec("itables") is None:
                continue
            capsys.readouterr()
            with repository():
                assert main(words[3:]) == 0, line
            done, said[line] = [*done, words[3]], capsys.readouterr().out
            if words[3] == "init":
                make_small()
    assert {"init", "play", "check", "score", "report", "query", "compare", "export"} <= set(done)
    assert "24 images, 48 captions" in said["init path/to/pets"]
    assert "keeps the contract" in said["check examples/own_method.py"]
    report = Path("reports/pets/README.md").read_text()
    assert "siglip (brought along)" in report and "Own method" in report
    leaderboard = said["export pets/leaderboard --format latex"]
    assert "siglip" in leaderboard and "Own method" in leaderboard
    assert "4 of 7 words are unknown: black, runs, on, beach" in said[ASKED]
    for question in (ASKED, "query two_branch_bidirectional --image x.jpg"):
        assert re.search(r"   1\. +-?\d\.\d{4}  \d+\.png +a dog with the colour", said[question])
        assert "reports/pets/local/query_two_branch_bidirectional.png" in said[question]
    assert "won" in said["compare two_branch_bidirectional cca"]


def test_an_experiment_runs_as_it_is_printed(newcomer):
    (experiment,) = (words for words in commands(DVC_PAGE) if words[:3] == ["dvc", "exp", "run"])
    with repository():
        assert main(["init", "path/to/pets"]) == 0
        make_small()
        assert main(["play", "pets"]) == 0
        for command in (
            ["git", "add", "."],
            ["git", *AUTHOR, "commit", "-qm", "played"],
            experiment,
        ):
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads(Path("results/pets/pets/cca/0/record.json").read_text())
    assert record["options"]["embedding_size"] == 8
    changed = subprocess.run(["git", "status", "--short"], capture_output=True, text=True).stdout
    assert "results/pets/pets/cca/0/record.json" in changed and "two_branch" not in changed


def test_the_papers_season_is_written_and_told(newcomer, capsys):
    first, *others = commands(section(README, "The papers' season"))
    assert main([*first[3:]]) == 0
    assert "season papers: " in capsys.readouterr().out
    assert [words[3] for words in others] == ["doctor", "play"]
    assert main(["doctor", "--quick"]) == 2  # what is missing
    told = capsys.readouterr()
    assert "MISSING" in told.out and "mscoco" in told.err
