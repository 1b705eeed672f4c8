"""Small seasons for tests: one without cells for single stages, one of two datasets to
resolve."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

import yaml
from dvc.repo import Repo

from benchmark.core.files import write_text
from benchmark.season import parameters
from benchmark.season.parameter_files import (
    SEASON_FILE,
    SEASONS,
    SHARED,
    activate,
    read_season,
)
from benchmark.season.pipeline import shared_settings
from benchmark.season.plugins import Fuse, Preset, presets
from benchmark.season.resolving import resolve

ROOT = Path(__file__).parent.parent
SCAN, TWO_BRANCH, FUSION = "scan_t2i_avg", "two_branch_single", "scan_t2i_avg_i2t_lse"
STAGED = '''
"""A method that trains from pixels and known words."""

from dataclasses import dataclass

from torch import nn

from benchmark.contracts.methods import Inputs


@dataclass(frozen=True, kw_only=True)
class Config:
    stage: int = 2
    epochs: int = 60


def inputs(config):
    image = "pixels" if config.stage == 2 else "pooled"
    scores = ("visual", "textual", "latent")
    return Inputs(image=image, text="words", word_vectors=True, scores=scores)


def recipe(config):
    return []


class Model(nn.Module):
    pass
'''


def params_of(**fields: object) -> parameters.Params:
    """A season on this machine's processor without cells; fields go over that."""
    empty = {"datasets": {}, "feature_sets": {}, "cells": {}, "fusions": {}}
    machine = {"device": "cpu", "weights_dir": None}
    return parameters.Params(
        **{"season": "try", "title": "Try"} | empty | machine | fields
    )


def write_params(
    params: parameters.Params, declared: parameters.Season | None = None
) -> None:
    """Settings of datasets; of `declared`, for stages that read cells, its file."""
    write_text(SHARED, yaml.safe_dump(shared_settings(params)))
    activate(params.season)
    if declared:
        text = yaml.safe_dump(declared.model_dump(mode="json", exclude_defaults=True))
        write_text(SEASONS / params.season / SEASON_FILE, text)


def clone() -> None:
    """Without seasons, results and history, in the working folder."""
    for folder in ("benchmark", "methods", "datasets", "examples"):
        shutil.copytree(
            ROOT / folder, folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    for file in ("dvc.yaml", ".gitignore", ".dvcignore", "params.yaml"):
        shutil.copy(ROOT / file, file)
    subprocess.run(["git", "init", "-q"], check=True)
    Repo.init().close()


@cache
def committed(name: str) -> parameters.Params:
    """A season of seasons/, resolved: to read, not to change."""
    return resolve(name, read_season(name))


def season(**changes: object) -> parameters.Season:
    """Two datasets, `drawn` and `folder`, two presets and two seeds; changes go over
    that."""
    image = parameters.ImageEncoder(
        network="mobilenet_v2", input_size=64, grid=2, flip=False
    )
    facts = {
        "title": "Try",
        "datasets": {
            "drawn": parameters.DatasetSettings(
                reader="shapes",
                options={"train": 9},
                image=parameters.ImageEncoder(
                    network="drawn_cnn", input_size=96, grid=4, standardise=True
                ),
            ),
            "folder": parameters.DatasetSettings(
                image=image,
                words=parameters.WordVectors(size=20),
                sentence={
                    "hglmm": parameters.SentenceEncoder(size=50, standardise=True)
                },
            ),
        },
        "presets": [SCAN, TWO_BRANCH],
        "seeds": [0, 3],
    }
    return parameters.Season(**facts | changes)


def with_dataset(
    season: parameters.Season, name: str, **changes: object
) -> parameters.Season:
    settings = season.datasets[name].model_copy(update=changes)
    return season.model_copy(update={"datasets": season.datasets | {name: settings}})


def known_with(**rows: Preset) -> dict[str, tuple[str, Preset]]:
    """Presets of methods/, and `rows` of a method file staged.py in the working
    folder."""
    return presets() | {name: ("staged.py", row) for name, row in rows.items()}


def staged_presets(folder: Path) -> dict[str, tuple[str, Preset]]:
    """One starts from another, and fusions of parts. Their method is written to
    `folder`, which must become the working folder."""
    (folder / "staged.py").write_text(STAGED)
    return known_with(
        first=Preset(
            title="First", network="resnet50", options={"stage": 1, "epochs": 240}
        ),
        second=Preset(title="Second", network="resnet50", start="first"),
        parts=Preset(
            title="P", fuse=Fuse(how="adaptive", of=["second:visual", "second:textual"])
        ),
        three=Preset(
            title="3", fuse=Fuse(how="average", of=["first", "second", "second:latent"])
        ),
    )
