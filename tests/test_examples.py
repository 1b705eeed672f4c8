"""Examples and what a new user reads first run as they are printed. Cells that cross a
method with the yardstick differ from VSE, or from dual-path, in one half alone.
Lessons are notebooks that run from top to bottom and store nothing of a run."""

import json
import re
import shutil
import sys
import tempfile
from dataclasses import replace
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from oracles.dual_path import instance
from report_seasons import CAPTIONS, IMAGES, enter_played_season
from test_methods import tiny
from test_vse import IDS, batch_of
from torch import nn

from benchmark.__main__ import main
from benchmark.commands import check
from benchmark.commands.season import schema
from benchmark.contracts.methods import (
    Batch,
    Captions,
    Sizes,
    two_branch_embedding,
    vse,
)
from benchmark.core.files import read_json, write_json
from benchmark.data import results
from benchmark.season.parameter_files import read_params
from benchmark.season.plugins import method_of, own_presets

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
FOLDER = "examples/crossed"
CROSSED = [
    "gru_under_instance_loss",
    "gru_under_triplets",
    "vse_on_text_cnn",
    "vse_on_vectors",
]
SMALL = {"embedding_size": 4, "word_size": 3}
SIZES = Sizes(image=5, text=9, classes=10)
LESSONS = sorted((EXAMPLES / "lessons").glob("*.ipynb"))
TRAIN = ("1_write_a_loss", "3_luck_of_seeds")  # many seconds
LARGEST = 16_000  # bytes
each = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
each_that_runs = pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path, id=path.stem, marks=[pytest.mark.slow] * (path.stem in TRAIN)
        )
        for path in LESSONS
    ],
)
LINK = re.compile(r"\]\(([^)\s]+)\)")


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


# Crossed methods ----------------------------------------------------------------------


def crossed(name: str, **options):
    method = method_of(f"{FOLDER}/{name}.py")
    torch.manual_seed(0)
    return method.Model(method.Config(**options), SIZES).double()


def yardstick() -> vse.Model:
    torch.manual_seed(0)
    return vse.Model(vse.Config(**SMALL), SIZES).double()


def with_classes(ids: list[int]) -> Batch:
    batch = batch_of(ids)
    return replace(batch, class_ids=batch.group_ids)


@pytest.mark.parametrize("name", CROSSED)
def test_it_keeps_the_contract(name):
    path = f"{FOLDER}/{name}.py"
    for row in [None, *(row for _, row in own_presets({name: path}).values())]:
        promises = check.check(tiny(path, row))
        assert [each.note for each in promises if not each.is_kept] == []


@pytest.mark.parametrize("name", ["gru_under_triplets", "gru_under_instance_loss"])
def test_under_another_loss_the_networks_are_the_yardsticks(name):
    model, plain, batch = crossed(name, **SMALL), yardstick(), batch_of(IDS)
    ours, theirs = (x.encode_captions(batch.captions)[0] for x in (model, plain))
    torch.testing.assert_close(ours, theirs)
    ours, theirs = (x.encode_images(batch.images)[0] for x in (model, plain))
    torch.testing.assert_close(ours, theirs)


def test_the_triplets_are_those_of_two_branch_networks():
    model, batch = crossed("gru_under_triplets", **SMALL), batch_of(IDS)
    (x,), (y,) = (
        model.encode_images(batch.images),
        model.encode_captions(batch.captions),
    )
    d, rest = torch.cdist(x, y), (batch.group_ids, 0.05, 10)
    expected = [
        two_branch_embedding.image_anchor(d, *rest),
        1.5 * two_branch_embedding.sentence_anchor(d, *rest),
    ]
    torch.testing.assert_close(list(model.loss(batch).values()), expected)


def test_the_instance_loss_is_the_log_probability_of_the_own_class():
    model, batch = crossed("gru_under_instance_loss", **SMALL), with_classes(IDS)
    terms = model.loss(batch)
    for name, (f,) in (
        ("visual", model.encode_images(batch.images)),
        ("textual", model.encode_captions(batch.captions)),
    ):
        costs = map(
            partial(instance, model.share.weight.tolist()), (16 * f).tolist(), IDS
        )
        assert terms[name].item() == pytest.approx(fmean(costs), rel=1e-6)


def test_on_vectors_the_loss_is_the_yardsticks():
    model = crossed("vse_on_vectors", **SMALL)
    batch = batch_of(IDS)
    vectors = torch.randn(len(IDS), 9, dtype=torch.float64)
    captions = Captions(values=vectors, lengths=torch.ones(len(IDS), dtype=torch.long))
    scores = model.similarity(
        model.encode_images(batch.images), model.encode_captions(captions)
    )
    costs = vse.hinges(scores, batch.group_ids[:, None] != batch.group_ids, 0.2)
    terms = model.loss(replace(batch, captions=captions))
    assert terms["image_anchor"].item() == pytest.approx(costs[0].amax(1).sum().item())
    assert terms["caption_anchor"].item() == pytest.approx(
        costs[1].amax(0).sum().item()
    )


# Lessons ------------------------------------------------------------------------------


def read_notebook(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def texts(path: Path, kind: str) -> list[str]:
    return [
        "".join(cell["source"])
        for cell in read_notebook(path)["cells"]
        if cell["cell_type"] == kind
    ]


@each_that_runs
def test_the_code_runs_from_top_to_bottom(path, tmp_path, monkeypatch):
    """Where Jupyter begins, and with the project's folder left as it is."""
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before, names = sorted(path.parent.iterdir()), {"__name__": "__main__"}
    for number, source in enumerate(texts(path, "code"), 1):
        exec(compile(source, f"{path.name}, code cell {number}", "exec"), names)
    assert sorted(path.parent.iterdir()) == before


@each
def test_a_notebook_is_plain_and_stores_no_outputs(path):
    book, code = read_notebook(path), texts(path, "code")
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert path.stat().st_size < LARGEST
    ids = [cell["id"] for cell in book["cells"]]
    assert len(set(ids)) == len(ids)
    ran = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert {(cell["execution_count"], *cell["outputs"]) for cell in ran} == {(None,)}
    assert not re.search(r"^\s*[%!]", "\n".join(code), re.MULTILINE), (
        "a magic, or a shell's command"
    )


@each
def test_a_lesson_gives_the_answer_first_and_then_an_exercise(path):
    first, *others = texts(path, "markdown")
    assert first.startswith(f"# {path.stem[0]}. ") and "**The answer first.**" in first
    (exercise,) = (text for text in others if "## Now you" in text)
    sources = ["".join(cell["source"]) for cell in read_notebook(path)["cells"]]
    assert "assert " in "\n".join(sources[sources.index(exercise) :])
    for link in LINK.findall("\n".join([first, *others])):
        assert (path.parent / link).exists(), link


def test_the_readme_names_every_lesson():
    readme = (LESSONS[0].parent.parent / "README.md").read_text(encoding="utf-8")
    assert len(LESSONS) == 5
    assert [
        path.name for path in LESSONS if f"(lessons/{path.name})" not in readme
    ] == []
