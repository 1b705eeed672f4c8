"""Figures and their pages."""

from pathlib import Path

from made_boards import board
from matplotlib.figure import Figure

from benchmark.report import figure_listing
from benchmark.report.figure_listing import (
    FigureFolder,
    FigureInputs,
    ReportFigure,
    remove_others,
)


def small(name: str, part: str = "") -> ReportFigure:
    figure = Figure(figsize=(1, 1))
    return ReportFigure(name=name, part=part, figure=figure, alt="a [b]", caption="*c*")


def test_a_page_links_to_the_figures_of_a_section(tmp_path, monkeypatch):
    drawn = [small("curves", "1"), small("curves", "2"), small("cost")]
    monkeypatch.setattr(figure_listing, "figures", lambda *_: drawn)
    folder = FigureFolder(tmp_path / "try/figures")
    inputs = FigureInputs(board=board())
    text = folder.save_section("cost", inputs, "made", "datasets/made.md")
    names = ["made-curves-1.svg", "made-curves-2.svg", "made-cost.svg"]
    assert [path.name for path in folder.written] == names
    assert all(path.is_file() for path in folder.written)
    paragraphs = text.split("\n\n")
    assert paragraphs[0] == r"![a \[b\]](../figures/made-curves-1.svg)"
    assert paragraphs[1] == r"\*c\*"
    # a page names a figure once, whatever its parts
    assert folder.shown == {"datasets/made.md": ["curves", "cost"]}
    on_first = folder.save_section("cost", inputs, "made", "README.md")
    assert "(figures/made-cost.svg)" in on_first


def test_what_an_earlier_report_left_is_removed_with_its_empty_folders(tmp_path):
    kept = tmp_path / "gallery/a.png"
    for path in (kept, tmp_path / "gallery/b.png", tmp_path / "old/c.png"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    remove_others(tmp_path, [kept])
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert left == [kept] and not Path(tmp_path, "old").exists()
