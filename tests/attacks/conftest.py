"""Every attack takes place in a folder of its own, with a folder beside it that is out of bounds.

Helper modules of tests/ are imported as in the other tests: pytest puts the folder of each
conftest.py on the path."""

import pytest
from sieges import outside

from benchmark.season.parameter_files import write_params
from benchmark.season.parameters import DatasetSettings
from seasons import params_of


@pytest.fixture(autouse=True)
def field(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_params(params_of(datasets={"mine": DatasetSettings(reader="folder")}))
    outside()
