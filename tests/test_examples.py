"""Examples and what a new user reads first: they run as they are printed."""

import json
import re
import shutil
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from report_seasons import CAPTIONS, IMAGES, enter_played_season
from torch import nn

from benchmark.__main__ import main
from benchmark.commands.season import schema
from benchmark.core.files import read_json, write_json
from benchmark.data import results
from benchmark.season.parameter_files import read_params

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


class TinyClip(nn.Module):
    """A random model with the interface of open_clip's."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.text = nn.Linear(3, 4), nn.Embedding(50, 4)

    def encode_image(self, pixels):
        return self.image(pixels)

    def encode_text(self, tokens):
        return self.text(tokens).mean(1)


@pytest.fixture
def open_clip(monkeypatch):
    def prepared(picture):
        assert picture.mode == "RGB"
        return torch.tensor(picture.resize((1, 1)).getpixel((0, 0))) / 255

    torch.manual_seed(0)
    module = SimpleNamespace(
        create_model_and_transforms=lambda name, pretrained: (
            TinyClip(),
            None,
            prepared,
        ),
        get_tokenizer=lambda name: (
            lambda texts: torch.tensor([[len(text) % 50] for text in texts])
        ),
    )
    monkeypatch.setitem(sys.modules, "open_clip", module)


def load(name: str):
    spec = spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_embeddings_of_a_checkpoint_become_a_row(
    open_clip, tmp_path_factory, tmp_path, monkeypatch, capsys
):
    enter_played_season(tmp_path_factory, tmp_path / "played", monkeypatch)
    card = Path("data/cards/open/card.json")
    write_json(card, read_json(card) | {"ways": ["i2t", "t2i"], "folds": 1})
    assert main(["score", "--dataset", "open", "--items", "todo"]) == 0
    example = load("embed_with_open_clip")
    example.main(["todo", "ViT-B-32", "weights.safetensors"])
    vectors = np.load("todo/captions.npz")["vectors"]
    assert vectors.shape == (CAPTIONS, 4)
    assert len(pd.read_csv("todo/images.csv")) == IMAGES
    files = ["--images", "todo/images.npz", "--captions", "todo/captions.npz"]
    assert main(["score", "--dataset", "open", "--name", "clip", *files]) == 0
    assert (
        results.read_kept("try", "open")["clip/0"].record.options["given"]
        == "embeddings"
    )
    with pytest.raises(SystemExit):
        example.main(["todo", "ViT-B-32", "weights.pt"])
    assert "expected a .safetensors file" in capsys.readouterr().err


@pytest.fixture
def in_a_copy(tmp_path, monkeypatch):
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    monkeypatch.chdir(tmp_path)


def test_the_own_method_keeps_its_promises(in_a_copy, capsys):
    assert main(["check", "examples/own_method.py"]) == 0
    assert "examples/own_method.py: keeps the contract" in capsys.readouterr().out


def test_the_own_season_can_be_resolved(in_a_copy):
    assert main(["season", "examples/own_season.yaml"]) == 0
    params = read_params()
    own = {cell.preset for cell in params.cells.values() if cell.method.endswith(".py")}
    assert own == {"own_method", "own_method_small"}
    assert [claim.better for claim in params.claims] == ["own_method"]


def test_the_schema_for_editors_is_that_of_season_files():
    written = (ROOT / "docs/season.schema.json").read_text()
    assert written == schema(), (
        "python -m benchmark season --schema > docs/season.schema.json"
    )
    keys = set(json.loads(written)["properties"])
    for path in [*ROOT.glob("seasons/*/season.yaml"), EXAMPLES / "own_season.yaml"]:
        assert set(yaml.safe_load(path.read_text())) <= keys, path


def test_versions_and_licence_agree():
    project = (ROOT / "pyproject.toml").read_text()
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert f'version = "{citation["version"]}"' in project
    assert f'license = "{citation["license"]}"' in project
    assert "Apache License" in (ROOT / "LICENSE").read_text()[:200]
    newest = re.search(
        r"^## (\S+), (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert newest.groups() == (citation["version"], str(citation["date-released"]))
