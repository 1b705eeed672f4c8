"""`printed`: a number or a name in the papers' tables, with what was measured in its
place."""

import re
import shutil
from pathlib import Path
from statistics import fmean

import pytest
from refusals import check, refusal
from report_seasons import enter_played_season, record_of

from benchmark.__main__ import main
from benchmark.boards.season_boards import metrics, read_boards
from benchmark.commands import printed
from benchmark.core.files import read_yaml, write_json
from benchmark.papers.printed_tables import papers
from benchmark.report.pages.result_tables import interval_of
from benchmark.season.parameter_files import activate

PAPERS = Path(printed.__file__).parent.parent / "papers"


@pytest.fixture
def played(tmp_path_factory, tmp_path, monkeypatch):
    """A season that was played, with its metrics.json; returns its boards by
    dataset."""
    printed.boards_of.cache_clear()
    params = enter_played_season(tmp_path_factory, tmp_path / "work", monkeypatch)
    boards = read_boards(params)
    write_json(Path("reports/try/metrics.json"), metrics(boards))
    yield {board.dataset: board for board in boards}
    printed.boards_of.cache_clear()


@pytest.fixture
def printed_lines(tmp_path, monkeypatch, capsys):
    """The lines that the verb prints, in a project without a report unless there is
    one."""
    if not Path("reports/try").exists():
        monkeypatch.chdir(tmp_path)
        activate("try")

    def told(*words: str) -> list[str]:
        assert main(["printed", *words]) == 0
        return capsys.readouterr().out.splitlines()

    return told


def every_number() -> list[tuple[str, str, str, str, float]]:
    """Table, place, label, metric and number of all papers, read by a loop from their
    files."""
    numbers = []
    for path in PAPERS.glob("*.yaml"):
        for name, table in read_yaml(path)["tables"].items():
            for row in table["rows"]:
                for place, values in row["numbers"].items():
                    for metric, value in zip(table["metrics"], values, strict=True):
                        if value is not None:
                            line = (
                                f"{path.stem}/{name}",
                                place,
                                row["label"],
                                metric,
                                value,
                            )
                            numbers.append(line)
    return numbers


@pytest.mark.parametrize("wanted", ["58.6", "58,6", "58.60", " 58.6 %"])
def test_a_number_is_found_wherever_it_is_printed(printed_lines, wanted):
    known = [(t, p, label) for t, p, label, _, value in every_number() if value == 58.6]
    lines = printed_lines(wanted)
    assert len(known) > 2 and len(lines) == len(known)
    for table, place, label in known:
        fits = [line for line in lines if line.startswith(f"{table}, {place}, {label}")]
        assert fits and all(
            ": i2t R@1 58.6" in line or " 58.6" in line for line in fits
        )


def test_a_number_with_fewer_decimals_stands_for_those_that_round_to_it(printed_lines):
    known = {value for *_, value in every_number() if 57.5 <= value <= 58.5}
    found = {
        float(n)
        for line in printed_lines("58")
        for n in re.findall(r" (\d+\.\d+)(?=,|$)", line)
    }
    assert len(known) > 2 and found == known
    assert printed_lines("446.2")[0] == (
        "scan/1, flickr30k/test, SCAN t-i AVG, lambda1 = 9 (scan_t2i_avg): rsum 446.2"
    )


@pytest.mark.parametrize("wanted", ["0.586", ".586", "0,586"])
def test_a_fraction_is_looked_for_as_a_percentage_and_that_is_said(
    printed_lines, wanted
):
    assert not any(abs(value - 0.586) < 0.0006 for *_, value in every_number())
    head, *lines = printed_lines(wanted)
    assert head == f"{wanted} as a fraction, 58.6 per cent:"
    assert lines == printed_lines("58.6")


def test_a_number_that_is_printed_stands_before_its_percentage(
    printed_lines, monkeypatch
):
    lines = printed.printed()
    share = lines[0]._replace(numbers={"overlap_s": 0.586})
    monkeypatch.setattr(printed, "printed", lambda: [*lines, share])
    first, head, *_ = printed_lines("0.586")
    assert first.endswith("S 0.5860") and "as a fraction" in head


def test_what_is_no_fraction_is_not_looked_for_as_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(refusal(printed, "0.586 %"), found="0.586 %; nearest is 1")
    check(refusal(printed, "0.5"), found="nearest is 1", do="rematch printed 50")
    check(refusal(printed, "0.99993"), found="and to 99.993 per cent")


def test_of_a_number_that_nobody_prints_the_nearest_one_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = [value for *_, value in every_number()]
    assert 18.4 not in values
    nearest = min(abs(value - 18.4) for value in values)
    told = refusal(printed, "18.4")
    check(told, expected="a printed number", found="18.4; nearest is ")
    assert abs(float(told.found.split()[-1]) - 18.4) == pytest.approx(nearest)
    monkeypatch.chdir(tmp_path)
    check(refusal(printed, "scan_t2i_avgg"), found="scan_t2i_avg?")
    check(refusal(printed, " "), expected="a printed number")
    check(refusal(printed, "9" * 400), expected="a printed number")


@pytest.mark.parametrize(
    ("wanted", "begins"),
    [
        ("scan/4", "scan/4, "),
        ("SCAN", "scan/"),
        ("vse++", ""),
        ("scan_t2i_avg", "scan/"),
        (
            "no hard neg",
            "scan/4, flickr30k/test, No hard negatives (scan_all_negatives)",
        ),
    ],
)
def test_a_name_finds_its_rows(printed_lines, wanted, begins):
    lines = printed_lines(wanted)
    assert lines and all(line.startswith(begins) for line in lines if wanted != "SCAN")
    places = {(t, p, label) for t, p, label, *_ in every_number()}
    if wanted == "scan/4":
        assert len(lines) == sum(table == "scan/4" for table, *_ in places)
    if wanted == "SCAN":  # those of others, which it cites, are left out
        known = papers()["scan"].tables.values()
        assert (
            len(lines)
            == sum(len(r.numbers) for of in known for r in of.rows if r.preset)
            > 25
        )


def test_what_was_measured_stands_once_for_each_preset_and_place(played, printed_lines):
    seen, rows, place = [], [], ""
    for line in printed_lines("scan_t2i_avg"):
        if line.startswith("    "):
            seen.append((place, line))
        else:
            place = line.split(", ")[1]
            rows.append(place)
    assert len(rows) > len(set(rows)) > 1 and {place for place, _ in seen} == set(rows)
    assert len(seen) == len(set(seen))


def test_below_a_row_stands_what_was_measured_with_its_interval(played, printed_lines):
    board = played["open"]
    row = board.row("scan_t2i_avg")
    ends = interval_of(board, row, "rsum")
    mean = fmean(record_of("scan_t2i_avg", seed)["metrics"]["rsum"] for seed in (0, 1))
    printed_line, *here = printed_lines("446.2")[:3]
    assert printed_line.startswith("scan/1, ")
    expected = f"rsum {mean:.1f} [{ends.low:.1f}, {ends.high:.1f}]"
    (line,) = [line for line in here if "Rematch, season try, open" in line]
    assert line.endswith(expected) and "not comparable: other dataset" in line


def test_a_bare_clone_has_intervals_and_what_was_never_prepared_means(played, capsys):
    shutil.rmtree("data/prepared")
    assert main(["printed", "446.2"]) == 0
    assert "[" in capsys.readouterr().out
    shutil.rmtree("data/cards")
    printed.boards_of.cache_clear()
    values = [record_of("scan_t2i_avg", seed)["metrics"]["rsum"] for seed in (0, 1)]
    assert main(["printed", "446.2"]) == 0
    out, err = capsys.readouterr()
    (line,) = [
        line for line in out.splitlines() if "Rematch, season try, open" in line
    ][:1]
    assert line.endswith(f"rsum {fmean(values):.1f}")
    assert "[" not in line and "try: without intervals: data/cards" in err
