"""Where results are read that git keeps."""

from pathlib import Path

import pytest

from benchmark.contracts import HOME
from benchmark.data.committed import committed

RECORDS = Path("results/flickr8k/flickr8k/records.json")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_empty_folder_has_those_of_the_package():
    assert committed(RECORDS) == HOME / RECORDS
    assert committed(RECORDS).is_file()


@pytest.mark.parametrize("part", ["params.yaml", "seasons/flickr8k/season.yaml"])
def test_a_project_has_its_own_alone(part):
    Path(part).parent.mkdir(parents=True, exist_ok=True)
    Path(part).touch()
    assert committed(RECORDS) == RECORDS


def test_what_is_in_the_folder_comes_first():
    RECORDS.parent.mkdir(parents=True)
    RECORDS.write_text("{}")
    assert committed(RECORDS) == RECORDS
