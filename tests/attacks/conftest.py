"""Attacks on what is read take place in a folder of their own, beside one that is out
of bounds.

Helper modules of tests/ are imported as in the other tests: pytest puts the folder of
each conftest.py on the path."""

from pathlib import Path

import pytest
from sieges import outside

from benchmark.season.parameters import DatasetSettings
from seasons import params_of, write_params


@pytest.fixture(scope="session")
def season_files(tmp_path_factory) -> dict[Path, bytes]:
    folder = tmp_path_factory.mktemp("parameters")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_params(params_of(datasets={"mine": DatasetSettings(reader="folder")}))
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder): path.read_bytes() for path in files}


@pytest.fixture
def field(tmp_path, season_files, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path, content in season_files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    outside()
