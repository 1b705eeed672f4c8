"""Tests compute as the stages do: portable, with one thread, so that runs agree."""

import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from benchmark.core import numerics
from benchmark.season import plugins

assert numerics.current().mode == numerics.PORTABLE, "numpy was imported before this package"


@pytest.fixture(scope="session", autouse=True)
def presets_are_parsed_once() -> Iterator[None]:
    """Of each file with the same content: seasons, papers and pages ask for all of them."""
    read = plugins._read_presets
    parsed = cache(lambda path, content: read(path))

    def read_presets(path: Path) -> dict[str, plugins.Preset]:
        return dict(parsed(path, path.read_bytes() if path.is_file() else b""))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugins, "_read_presets", read_presets)
        yield


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Libraries stay until the end: without them a collection of garbage takes a tenth."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """What stays frozen at the end, triton would list as leaked, in 30 lines."""
    gc.unfreeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Tests read files of the repository: none may leave another working folder behind."""
    is_last_of_file = nextitem is None or nextitem.path != item.path
    assert not is_last_of_file or Path.cwd() == item.config.rootpath, f"left in {Path.cwd()}"
