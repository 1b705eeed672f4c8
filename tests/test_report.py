"""A whole report: the same bytes twice, links, hostile text, what it refuses and
deletes."""

import json
import os
import re
import shutil
import subprocess
import sys
from math import isfinite
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image
from refusals import holds, refused
from report_readers import (
    OF_REPOSITORY,
    assert_hostile_text_is_text,
    links,
    markdown_pages,
    on_readme,
    page,
    seen_text,
    shown_table,
    target_of,
)
from report_seasons import (
    DATASETS,
    FOLDER,
    FUSION,
    HOSTILE,
    MEMBERS,
    PRESETS,
    README,
    cells,
    contents,
    drawn_season,
    enter_played_season,
    enter_reported_season,
    lose,
    lose_record,
    record_of,
    season,
    write_drawn_report,
)

from benchmark.boards import claim_ledger, claims, season_boards
from benchmark.commands.ledger import write_ledger
from benchmark.papers import printed_tables
from benchmark.papers.printed_tables import About, Claim, Entry, Paper, Row
from benchmark.report import __main__ as report
from benchmark.report import figure_listing, ledger_figures
from benchmark.report.figure_listing import ReportFigure
from benchmark.report.markdown import escaped
from benchmark.report.pages import fidelity_page, ledger_pages, season_pages
from benchmark.report.pages.examples import chosen
from benchmark.season.parameters import Params
from benchmark.season.plugins import presets
from benchmark.stats.claim_kinds import Conclusion

ROOT = Path(report.__file__).parents[2]


@pytest.fixture(scope="module")
def drawn_once(tmp_path_factory) -> Path:
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
    """A season with every record, in a folder of its own; its report draws no
    figures."""
    return enter_played_season(tmp_path_factory, tmp_path / "work", monkeypatch)


@pytest.fixture
def reported(tmp_path_factory, tmp_path, monkeypatch) -> Params:
    """As `played`, after `write_report` and `write_ledger`."""
    return enter_reported_season(tmp_path_factory, tmp_path / "work", monkeypatch)


class TestWithFigures:
    @pytest.mark.slow
    def test_another_process_writes_the_same_bytes(self, drawn, tmp_path, monkeypatch):
        first = contents(FOLDER)
        monkeypatch.chdir(shutil.copytree(".", tmp_path / "work"))
        shutil.rmtree(FOLDER)
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
        command = [sys.executable, "-m", "benchmark.report"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-400:]
        assert contents(FOLDER) == first
        assert done.stdout.split() == [str(README)]
        names = {str(Path(name).relative_to(FOLDER)) for name in first}
        assert {"README.md", "claims.md", "claims.json", "metrics.json"} <= names
        assert {
            "plots/training.csv",
            "plots/leaderboard.csv",
            "papers/scan.md",
        } <= names
        assert {
            "local/gated.md",
            *(f"figures/{dataset}-cost.svg" for dataset in DATASETS),
        } <= names

    def test_links_resolve_and_every_page_is_reachable_from_the_first(self, drawn):
        reached, waiting = set(), [README]
        while waiting:
            path = waiting.pop()
            reached.add(path.resolve())
            for target in links(path):
                if target.startswith("#"):
                    anchors = re.findall(r'<a id="([^"]+)"></a>', path.read_text())
                    heads = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
                    anchors += [head.lower().replace(" ", "-") for head in heads]
                    assert target[1:] in anchors, target
                elif not target.startswith("https://"):
                    assert target_of(path, target).is_file(), (path, target)
                own = (path.parent / target).resolve()
                if not OF_REPOSITORY.fullmatch(target) and own.suffix == ".md":
                    waiting += [own] if own not in reached else []
        pages = {
            path.resolve() for path in (*markdown_pages(), *FOLDER.parent.glob("*.md"))
        }
        # no page links to one that git does not keep, so that no committed link is dead
        local = (FOLDER / "local/gated.md").resolve()
        assert pages == reached | {local} and local not in reached
        assert {"claims.md", "open.md", "gated.md", "scan.md", "fidelity.md"} <= {
            path.name for path in pages
        }

    def test_every_figure_of_the_folder_is_on_a_page_and_thumbnails_are_small(
        self, drawn
    ):
        linked = {
            (path.parent / target).resolve()
            for path in markdown_pages()
            for target in links(path)
        }
        files = {path.resolve() for path in FOLDER.rglob("*.[ps][nv]g")}
        assert len(files) > 20
        assert {path for path in linked if path.suffix in (".png", ".svg")} == files
        paths = list((FOLDER / "figures/gallery").rglob("*.png"))
        assert paths and not (FOLDER / "local/open.md").exists()
        for path in paths:
            with Image.open(path) as sheet:
                assert sheet.height <= 6 * 128 and sheet.width <= 6 * (18 + 128)

    def test_hostile_text_of_records_cards_and_captions_stays_text(self, drawn):
        for path in markdown_pages():
            assert_hostile_text_is_text(path)
        shown = " ".join(HOSTILE.split())
        for name in ("README.md", "claims.md", "datasets/open.md"):
            assert shown in seen_text(FOLDER / name), name
        dataset = seen_text(FOLDER / "datasets/open.md")
        for part in ("Dataset open ", "not applicable", "epochs = "):
            assert part in dataset
        assert re.search(rf"open text \d+ {re.escape(shown)}", dataset)
        assert re.search(
            rf"gated text \d+ {re.escape(shown)}", seen_text(FOLDER / "local/gated.md")
        )
        for path in FOLDER.rglob("*.svg"):
            assert "<script" not in path.read_text(), path

    def test_what_may_not_be_published_is_in_local_alone(self, drawn):
        published = {
            k: data for k, data in contents(FOLDER).items() if "/local/" not in k
        }
        assert any(
            b"open text 8" in data for k, data in published.items() if k.endswith(".md")
        )
        for name, data in published.items():
            assert b"gated text" not in data, name
            assert not re.search("gallery/gated|gated-(words|attention)", name)
        local = contents(FOLDER / "local")
        assert any(
            b"gated text" in data for k, data in local.items() if k.endswith(".md")
        )
        assert any(re.search(r"local/gated/\S+-found\.png$", name) for name in local)
        assert "/local/gated.md`" in page("gated")

    def test_the_main_row_of_every_paper_has_hits_and_misses_with_images_of_its_own(
        self, drawn
    ):
        text = page("open").partition("### Hits and misses")[2].partition("\n##")[0]
        mains = ("cyclematch_adaptive", "scan_i2t_avg")
        for title in map(printed_tables.title_of, mains):
            assert text.count(f"**{escaped(title)}, seed ") == 1
        files = re.findall(r"\(\S+/(\S+-found\.png)\)", text)
        assert len(files) == len(set(files))
        assert {f"{preset}-found.png" for preset in mains} <= set(files)


def hostile_paper() -> Paper:
    about = About(
        title=HOSTILE, authors=HOSTILE, year=2018, venue=HOSTILE, source=HOSTILE
    )
    words = {"label": HOSTILE, "setting": HOSTILE, "note": HOSTILE}
    numbers = {"flickr30k/test": [50.0]}
    rows = [
        Row(**words, preset=MEMBERS[0], numbers=numbers),
        Row(**words, unplayed=HOSTILE, numbers=numbers),
    ]
    table = printed_tables.Table(
        title=HOSTILE, metrics=["i2t_r1"], rows=rows, note=HOSTILE
    )
    facts = {"statement": HOSTILE, "where": HOSTILE, "metric": "rsum", "note": HOSTILE}
    made = [
        Claim(id="a", presets=list(MEMBERS), headline=HOSTILE, **facts),
        Claim(id="b", unplayed=HOSTILE, **facts),
    ]
    return Paper(paper=about, tables={"1": table}, claims=made)


def test_hostile_text_of_presets_papers_and_figures_stays_text(played, monkeypatch):
    changed = presets()[MEMBERS[0]][1].model_copy(
        update={"title": HOSTILE, "note": HOSTILE}
    )
    monkeypatch.setattr(
        season_boards, "presets", lambda: presets() | {MEMBERS[0]: ("scan", changed)}
    )
    pages = (season_pages, ledger_pages, fidelity_page)
    for module in (*pages, claims, claim_ledger, ledger_figures):
        monkeypatch.setattr(module, "papers", lambda: {"hostile": hostile_paper()})
    facts = dict.fromkeys(("paper", "code", "ours", "why", "option"), HOSTILE)
    entries = {HOSTILE: [Entry(topic="a | b", **facts)]}
    monkeypatch.setattr(fidelity_page, "fidelity", lambda: entries)
    drawn = ReportFigure(
        name="x", figure=Figure(figsize=(1, 1)), alt=HOSTILE, caption=HOSTILE
    )
    monkeypatch.setattr(figure_listing, "figures", lambda *_: [drawn])
    report.write_report(played)
    write_ledger()
    shown = " ".join(HOSTILE.split())
    for path in (*markdown_pages(), *FOLDER.parent.glob("*.md")):
        assert_hostile_text_is_text(path)
    for name in (
        "README.md",
        "claims.md",
        "datasets/open.md",
        "../README.md",
        "../fidelity.md",
    ):
        assert shown in seen_text(FOLDER / name), name
    assert (
        shown_table((FOLDER / "claims.md").read_text(), "verdict").row(shown)["claim"]
        == shown
    )
    table = shown_table((FOLDER / "papers/hostile.md").read_text(), "row")
    assert table.records()[0]["row"] == f"{shown}, {shown}"


def test_a_verdict_against_a_paper_stands_with_what_speaks_for_us(played, monkeypatch):
    first, _ = MEMBERS
    given = {
        "statement": "S.",
        "where": "W",
        "metric": "rsum",
        "presets": [first, FUSION],
    }
    about = About(title="T", authors="A", year=2018, venue="V", source="S")
    paper = Paper(paper=about, tables={}, claims=[Claim(id="a", **given)])
    for module in (season_pages, claims):
        monkeypatch.setattr(module, "papers", lambda: {"made": paper})
    # no difference reaches beyond it
    monkeypatch.setattr(claims, "margin_of", lambda *_: 200.0)
    report.write_report(played)
    text = seen_text(FOLDER / "claims.md")
    assert "1 without effect" in text
    assert "Against loops" in text.partition("Against the papers")[2]
    told, *_ = json.loads((FOLDER / "claims.json").read_text())["datasets"]
    (part,) = told["claims"][0]["parts"]
    assert part["conclusion"] == Conclusion.NO_DIFFERENCE and part["doubt"]


def metrics_of_report() -> dict:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads((FOLDER / "metrics.json").read_text(), parse_constant=refuse)


def test_metrics_are_means_over_the_seeds_and_plots_tables_for_dvc(reported):
    metrics = metrics_of_report()
    records = [record_of(FUSION, seed) for seed in (0, 1)]
    for name in ("rsum", "i2t_r1", "t2i_medr", "overlap_s", "i2t_r1_tie_gap"):
        expected = sum(record["metrics"][name] for record in records) / 2
        assert metrics["open"][FUSION][name] == pytest.approx(expected)
    assert "overlap_s_low" in records[0]["metrics"]
    assert not {"overlap_s_low", "overlap_s_high"} & set(metrics["open"][FUSION])
    assert set(metrics) == set(DATASETS) and set(metrics["open"]) == {
        *PRESETS,
        "claims",
    }
    assert all(isfinite(x) for name in PRESETS for x in metrics["open"][name].values())
    curves = pd.read_csv(FOLDER / "plots/training.csv")
    assert list(curves.columns) == ["epoch", "loss", "val_rsum", "cell"]
    trained = [preset for preset in PRESETS if preset != FUSION]
    named = {
        f"{d} {preset} {s}" for d in DATASETS for preset in trained for s in (0, 1)
    }
    assert set(curves["cell"]) == named
    assert [*curves.groupby("cell")["val_rsum"].apply(list)] == [[90, 99, 98]] * len(
        named
    )
    board = pd.read_csv(FOLDER / "plots/leaderboard.csv")
    assert len(board) == len(DATASETS) * len(PRESETS)
    for row in board.itertuples():
        assert row.rsum == pytest.approx(metrics[row.dataset][row.preset]["rsum"])


def test_a_season_in_which_everything_failed_still_has_a_report(played):
    params = season(seeds=(0,))
    for cell in cells(params):
        lose(cell.dataset, cell.preset, cell.seed, "out of luck")
    report.write_report(params)
    for dataset in DATASETS:
        assert page(dataset).count("out of luck") == 4
        assert "No preset has" in on_readme(dataset)
    assert all(
        set(of_dataset) == {"claims"} for of_dataset in metrics_of_report().values()
    )
    for path in markdown_pages():
        assert_hostile_text_is_text(path)


def test_a_cell_that_was_not_run_is_named_and_the_rest_is_shown(played, capsys):
    lose_record("open", "two_branch_bidirectional", 1)
    report.write_report(played)
    told = capsys.readouterr().err
    assert holds(told, "1 of 16 cells", "open-two_branch_bidirectional-1")
    assert "run: rematch play try" in told
    assert "**Left out**, as 1 of its cells" in on_readme("open")
    assert "Left out" not in on_readme("gated")
    row = shown_table(page("open"), "rsum").row("Two-branch")
    assert row["seeds"].split()[0] == "1" and "failed" not in row.values()
    shutil.rmtree("results/try/gated")  # a fusion is left out with what it fuses
    lose_record("open", "scan_i2t_lse", 1)
    (board,) = season_boards.read_boards(played)
    assert f"open-{FUSION}-1" in board.missing and len(board.missing) == 3
    shutil.rmtree("results/try/open")
    with refused("/0", found="nothing", do="run: rematch play try"):
        report.write_report(played)


def test_without_prepared_data_boards_say_what_they_lack(played):
    shutil.rmtree("data/prepared/open")
    with refused("open/captions.parquet", "prepared", do="rematch fetch open, then"):
        report.write_report(played)
    shutil.rmtree("data/cards/open")
    with refused(
        "open/card.json", "card of the prepared", do="rematch fetch open, then"
    ):
        report.write_report(played)


def test_without_raw_files_only_the_local_gallery_is_left_out(reported, capsys):
    first = contents(FOLDER)
    os.rename("data/raw/gated", "data/raw/away")
    shutil.rmtree(FOLDER / "local")
    report.write_report(reported)
    assert "gallery of gated" in capsys.readouterr().err
    assert contents(FOLDER) == {k: v for k, v in first.items() if "/local/" not in k}


def test_without_what_was_retrieved_there_is_no_gallery(reported):
    Path("results/try/open/answers.zip").unlink()
    report.write_report(reported)
    assert "not kept here" in page("open")


def test_what_an_earlier_report_left_is_removed(reported):
    first = contents(FOLDER)
    left = (
        "figures/old.png",
        "figures/gallery/gone/1.png",
        "figures/.half.png.12.part",
    )
    for name in (
        *left,
        "papers/gone.md",
        "datasets/gone.md",
        "local/gated/gated-words.png",
    ):
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    (FOLDER / "local" / "notes.md").write_text("mine")
    report.write_report(reported)
    assert (FOLDER / "local" / "notes.md").read_text() == "mine"
    (FOLDER / "local" / "notes.md").unlink()
    assert contents(FOLDER) == first


def test_hits_and_misses_are_spread_over_the_queries():
    ranks = pd.Series([3, 0] * 30).to_numpy()
    picked = chosen(ranks, each=3)
    assert [result for _, result in picked] == ["hit"] * 3 + ["miss: 4"] * 3
    assert [query for query, _ in picked] == [11, 31, 51, 10, 30, 50]
    assert chosen(ranks[:1], each=3) == [(0, "miss: 4")]
