"""The ledger as a figure."""

import pytest
from made_boards import enter_made, judged, points_of_marker, season, titles
from refusals import holds

from benchmark.boards.claim_ledger import ledger
from benchmark.papers.printed_tables import papers
from benchmark.report.ledger_figures import ledger_figure


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    enter_made(tmp_path, monkeypatch)


SCAN = [claim for claim in papers()["scan"].claims if claim.presets]
DENIED = next(claim for claim in SCAN if claim.parts[0].kind == "alike")


def rows_of(*found, split: str = "official"):
    return ledger([season("s", *found, dataset="d", title="Data", split=split)])


def test_the_ledger_may_have_more_places_than_markers():
    seasons = []
    for number in range(17):
        name = f"s{number:02}"
        found = judged("holds", SCAN[0].id)
        seasons.append(season(name, found, dataset="d", title="Data", split=name))
    legend = titles(ledger_figure(ledger(seasons)))
    assert {"Data (s00)", "Data (s16)"} <= set(legend)


def test_the_ledger_draws_shares_of_the_printed_difference():
    figure = ledger_figure(
        rows_of(judged("holds", SCAN[0].id), judged("undecided", DENIED.id))
    )
    asserted, denied = figure.axes
    assert [x for x, _ in points_of_marker(asserted, "o")] == [0.5]
    assert [x for x, _ in points_of_marker(asserted, "|")] == [1.0]
    (span,) = asserted.collections[0].get_segments()
    assert span[:, 0].tolist() == [0.25, 0.75]
    assert points_of_marker(denied, "o")[0][0] == pytest.approx(2 / 1.5)  # in margins
    assert (denied.patches[0].get_x(), denied.patches[0].get_width()) == (-1, 2)
    legend = "\n".join(titles(figure))
    assert holds(legend, "Data (s)", "printed", "holds")


# Boards ---
