"""Datasets of a season whose titles would be the same are distinguished by their names."""

from pathlib import Path

from report_seasons import enter_played_season

from benchmark.boards.boards import read_boards
from benchmark.core.files import read_json, write_json


def titles(season, **facts: str) -> list[str]:
    """Of both boards, with these facts on both cards."""
    for dataset in season.datasets:
        path = Path("data/cards", dataset, "card.json")
        write_json(path, read_json(path) | facts)
    return [board.title for board in read_boards(season)]


def test_titles_are_told_apart(tmp_path_factory, tmp_path, monkeypatch):
    season = enter_played_season(tmp_path_factory, tmp_path / "played", monkeypatch)
    assert titles(season) == ["Dataset gated", "Dataset open"]
    assert titles(season, title="Same") == ["Same (gated)", "Same (open)"]
    assert titles(season, reader="folder") == ["gated", "open"]  # images of one's own
