"""Tests compute as the stages do: portable, with one thread, so that runs agree."""

import gc
from pathlib import Path

import pytest

from benchmark.core import numerics
from benchmark.core.files import read_json, write_json

assert numerics.current().mode == numerics.PORTABLE, "imported after numpy"


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def external_season(
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A season that was run, for rows from elsewhere."""
    from report_seasons import draw_nothing, enter_played_season

    params = enter_played_season(tmp_path_factory, tmp_path / "played", monkeypatch)
    for dataset in params.datasets:
        card = Path(f"data/cards/{dataset}/card.json")
        write_json(card, read_json(card) | {"ways": ["i2t", "t2i"], "folds": 1})
    draw_nothing(monkeypatch)


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.collect()
    # libraries stay until the end: without them a collection takes a tenth
    gc.freeze()


def pytest_sessionfinish() -> None:
    # else triton lists as leaked what stays frozen, in 30 lines
    gc.unfreeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    is_last_of_file = nextitem is None or nextitem.path != item.path
    # the next file reads files of the repository by relative paths
    assert not is_last_of_file or Path.cwd() == item.config.rootpath, (
        f"left in {Path.cwd()}"
    )
