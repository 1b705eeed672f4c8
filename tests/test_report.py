"""The report with figures: the same bytes twice, every kind of figure, links, hostile text."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from PIL import Image
from report_readers import (
    OF_REPOSITORY,
    assert_contained,
    links,
    markdown_pages,
    parsed,
    seen,
    shown_table,
    target_of,
)
from report_seasons import (
    DATASETS,
    FOLDER,
    HOSTILE,
    MEMBERS,
    PAPERS,
    README,
    contents,
    drawn_season,
    enter_played_season,
    enter_reported_season,
    presets_once,
    write_drawn_report,
)

from benchmark.analysis import boards, claim_ledger, claims
from benchmark.commands.ledger import write_ledger
from benchmark.data import prepared_tables
from benchmark.data.raw_files import raw_dataset
from benchmark.papers import printed_tables
from benchmark.papers.fidelity_notes import Entry
from benchmark.papers.printed_tables import About, Claim, Paper, Row
from benchmark.report import __main__ as report
from benchmark.report import figure_listing, papers_figure
from benchmark.report.figure_listing import FigureInputs, Picture
from benchmark.report.pages import ledger_pages, season_pages
from benchmark.season.parameters import Params

ROOT = Path(report.__file__).parents[2]
KINDS = ("png", "svg")


@pytest.fixture(scope="module")
def drawn_once(tmp_path_factory) -> Path:
    """The folder of a small season with every kind of figure, and its report."""
    folder = tmp_path_factory.mktemp("drawn")
    write_drawn_report(folder)
    return folder


@pytest.fixture
def drawn(drawn_once, monkeypatch) -> Params:
    """The folder of `drawn_once`: to read, not to change."""
    monkeypatch.chdir(drawn_once)
    return drawn_season()


@pytest.fixture
def played(tmp_path_factory, tmp_path, monkeypatch) -> Params:
    """A season with every record, in a folder of its own; its report draws no figures."""
    return enter_played_season(tmp_path_factory, tmp_path / "work", monkeypatch)


@pytest.mark.slow
def test_another_process_writes_the_same_bytes_without_torch(drawn, tmp_path, monkeypatch):
    first = contents(FOLDER)
    monkeypatch.chdir(shutil.copytree(".", tmp_path / "work"))
    shutil.rmtree(FOLDER)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-X", "importtime", "-m", "benchmark.report", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert contents(FOLDER) == first
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "pandas" in imported and "torch" not in imported  # reports are made without it
    assert json.loads(done.stdout) == json.loads((FOLDER / "metrics.json").read_text())
    names = {str(Path(name).relative_to(FOLDER)) for name in first}
    assert {"README.md", "claims.md", "claims.json", "metrics.json", "local/gated.md"} <= names
    assert {"plots/training.csv", "plots/leaderboard.csv", "papers/scan.md"} <= names
    for dataset in DATASETS:
        for kind in ("similarities", "training", "cost"):
            for suffix in KINDS:
                assert f"figures/{dataset}-{kind}.{suffix}" in names


def test_every_kind_of_figure_is_drawn(drawn):
    figures = {path.name for path in (FOLDER / "figures").iterdir()}
    everywhere = ["cost", "overlaps", "similarities", "training", "scan-gap"]
    of_open = [
        "claims",
        "cyclematch-gap",
        "retrieval-ranking",
        "cyclematch-curves-cyclematch_adaptive",
        "cyclematch-similarity",
        "cyclematch-spaces",
        "cyclematch-weights-cyclematch_adaptive",
        "instance_loss-correlations-dual_path_instance_1",
        "instance_loss-losses",
        "scan-regions",
    ]
    names = [f"{dataset}-{name}" for dataset in DATASETS for name in everywhere]
    names += [f"open-{name}" for name in of_open]
    drawn_names = {f"{name}.{kind}" for name in names for kind in KINDS}
    assert figures == {"gallery", *drawn_names, *explanations_of("open")}
    local = {path.name for path in (FOLDER / "local/gated").glob("gated-*")}
    assert local == set(explanations_of("gated"))


def test_every_figure_is_a_picture(drawn):
    pictures = list((FOLDER / "figures").glob("*.png"))
    assert len(pictures) > 20
    for path in pictures:
        with Image.open(path) as picture:
            assert min(picture.size) > 20 and len(picture.convert("RGB").getcolors(1 << 20)) > 1


def explanations_of(dataset: str) -> list[str]:
    """Attention is of pictures, which no SVG makes smaller or sharper."""
    names = ["words.png", "words.svg", "attention-1.png", "attention-2.png"]
    return [f"{dataset}-{name}" for name in names]


def test_a_training_of_no_epochs_has_no_curve(drawn):
    curves = (FOLDER / "figures/open-training.svg").read_text()
    assert ">SCAN i-t AVG<" in curves
    assert "12 regions" not in curves
    assert "12 regions" in (FOLDER / "figures/open-similarities.svg").read_text()


@pytest.fixture(params=["with figures", "without figures"])
def reported(request) -> None:
    """A report, and one without figures."""
    if request.param == "with figures":
        request.getfixturevalue("drawn")
    else:
        monkeypatch = request.getfixturevalue("monkeypatch")
        folder = request.getfixturevalue("tmp_path") / "work"
        enter_reported_season(request.getfixturevalue("tmp_path_factory"), folder, monkeypatch)


def test_links_and_pictures_of_every_page_resolve(reported):
    pages = markdown_pages()
    names = {str(path.relative_to(FOLDER)) for path in pages}
    datasets = {f"datasets/{dataset}.md" for dataset in DATASETS}
    papers = {name for name in names if name.startswith("papers/")}
    assert papers and papers < {f"papers/{path.stem}.md" for path in PAPERS.glob("*.yaml")}
    assert names == papers | datasets | {"README.md", "claims.md", "local/gated.md"}
    for path in [*pages, *FOLDER.parent.glob("*.md")]:
        assert links(path) or path.parent.name == "local", path
        for target in links(path):
            if not target.startswith("https://"):
                assert target_of(path, target).is_file(), (path, target)
    for path in (FOLDER / "datasets/open.md", FOLDER / "local/gated.md"):
        assert any(target.endswith(".png") for target in links(path))


def test_every_page_is_reachable_from_the_first(reported):
    reached, waiting = set(), [README]
    while waiting:
        path = waiting.pop()
        reached.add(path.resolve())
        own = [target for target in links(path) if not OF_REPOSITORY.fullmatch(target)]
        targets = [(path.parent / target).resolve() for target in own]
        waiting += [page for page in targets if page.suffix == ".md" and page not in reached]
    pages = {path.resolve() for path in (*markdown_pages(), *FOLDER.parent.glob("*.md"))}
    assert pages == reached


def test_every_figure_of_the_folder_is_on_a_page_as_picture_and_as_link(drawn):
    """What no page shows would be left behind for ever."""
    linked = {
        (path.parent / target).resolve() for path in markdown_pages() for target in links(path)
    }
    files = {path.resolve() for path in FOLDER.rglob("*.[ps][nv]g")}
    assert {path for path in linked if path.suffix in (".png", ".svg")} == files


def test_hostile_text_of_records_cards_and_captions_stays_text(drawn):
    for path in markdown_pages():
        assert_contained(path)
    shown = " ".join(HOSTILE.split())
    for name in ("README.md", "claims.md", "datasets/open.md"):
        assert shown in seen(FOLDER / name), name
    dataset = seen(FOLDER / "datasets/open.md")
    for part in ("Dataset open ", "trained on ", "not applicable", "epochs = "):
        assert part in dataset
    assert re.search(rf"open text \d+ {re.escape(shown)}", dataset)
    assert re.search(rf"gated text \d+ {re.escape(shown)}", seen(FOLDER / "local/gated.md"))


def test_figures_hold_no_script(drawn):
    drawings = sorted(FOLDER.rglob("*.svg"))
    assert any("alert(1)" in path.read_text() for path in drawings)
    for path in drawings:
        assert "<script" not in path.read_text(), path


def test_hostile_text_of_presets_papers_and_figures_stays_text(played, monkeypatch):
    changed = presets_once()[MEMBERS[0]][1].model_copy(update={"title": HOSTILE, "note": HOSTILE})
    known = presets_once() | {MEMBERS[0]: ("scan", changed)}
    monkeypatch.setattr(boards, "presets", lambda: known)
    monkeypatch.setattr(season_pages, "papers", lambda: {"hostile": hostile_paper()})
    monkeypatch.setattr(claims, "papers", lambda: {"hostile": hostile_paper()})
    facts = dict.fromkeys(("paper", "code", "ours", "why", "option"), HOSTILE)
    monkeypatch.setattr(
        ledger_pages, "fidelity", lambda: {HOSTILE: [Entry(topic="a | b", **facts)]}
    )
    for module in (claim_ledger, ledger_pages, papers_figure):
        monkeypatch.setattr(module, "papers", lambda: {"hostile": hostile_paper()})
    monkeypatch.setattr(ledger_pages, "PAPER_OF", {"scan": "hostile"})
    figure = Figure(figsize=(1, 1))
    pictures = [Picture(name="similarities", figure=figure, alt=HOSTILE, caption=HOSTILE)]
    monkeypatch.setattr(figure_listing, "pictures", lambda *_: pictures)
    report.write_report(played)
    write_ledger()
    for path in (*markdown_pages(), *FOLDER.parent.glob("*.md")):
        assert_contained(path)
        images = [t for token in parsed(path.read_text()) for t in token.children or ()]
        for image in images:
            if image.type == "image" and "alert" in image.content:
                assert " ".join(HOSTILE.split()) in image.content.replace("\\", ""), path
    shown = " ".join(HOSTILE.split())
    for name in ("README.md", "claims.md", "datasets/open.md", "../README.md", "../fidelity.md"):
        assert shown in seen(FOLDER / name), name
    tested = shown_table((FOLDER / "claims.md").read_text(), "verdict").row(shown)
    assert tested["claim"] == shown
    table = shown_table((FOLDER / "papers/hostile.md").read_text(), "row")
    assert table.records()[0]["row"] == f"{shown}, {shown}"  # two rows of this label: its setting


def hostile_paper() -> Paper:
    about = About(title=HOSTILE, authors=HOSTILE, year=2018, venue=HOSTILE, source=HOSTILE)
    words = {"label": HOSTILE, "setting": HOSTILE, "note": HOSTILE}
    numbers = {"flickr30k/test": [50.0]}
    rows = [
        Row(**words, preset=MEMBERS[0], numbers=numbers),
        Row(**words, unplayed=HOSTILE, numbers=numbers),
    ]
    table = printed_tables.Table(title=HOSTILE, metrics=["i2t_r1"], rows=rows, note=HOSTILE)
    facts = {"statement": HOSTILE, "where": HOSTILE, "metric": "rsum", "note": HOSTILE}
    made = [
        Claim(id="a", presets=list(MEMBERS), **facts),
        Claim(id="b", unplayed=HOSTILE, **facts),
    ]
    return Paper(paper=about, tables={"1": table}, claims=made)


def test_nothing_of_pictures_that_may_not_be_published_is_outside_of_local(drawn):
    published = {name: data for name, data in contents(FOLDER).items() if "/local/" not in name}
    assert any(b"open text 8" in data for name, data in published.items() if name.endswith(".svg"))
    assert any(b"open text 8" in data for name, data in published.items() if name.endswith(".md"))
    for name, data in published.items():
        assert b"gated text" not in data, name
        assert "gallery/gated" not in name
        assert not re.search("gated-(words|attention)", name)
    local = {name: data for name, data in contents(FOLDER / "local").items() if "gated" in name}
    assert any(b"gated text 8" in data for name, data in local.items() if name.endswith(".svg"))
    assert any(b"gated text" in data for name, data in local.items() if name.endswith(".md"))
    assert any(re.search(r"local/gated/\d{6}.*\.png$", name) for name in local)


def test_the_samples_of_words_name_captions_and_never_quote_them(drawn):
    """What a cell leaves behind is committed, whatever may be published."""
    for path in Path("results").rglob("*"):
        assert path.is_dir() or b"gated text" not in path.read_bytes(), path


def test_explanations_are_of_the_best_preset_that_has_any(drawn):
    board = boards.read_boards(drawn)[1]
    inputs = FigureInputs(
        board=board,
        data=prepared_tables.read(board.dataset),
        open_picture=raw_dataset(drawn, board.dataset).pictures(),
    )
    words, *attention = figure_listing.pictures("examples", inputs)
    best = next(standing.row.title for standing in board.ranked if standing.method == "scan")
    assert board.ranked[0].method != "scan"  # or the test could not fail
    assert words.alt.startswith(best)
    assert [picture.name for picture in attention] == ["attention-1", "attention-2"]
    assert attention[1].alt.endswith("open text 8")
