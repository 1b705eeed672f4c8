"""The ledger of claims over all seasons, from claims.json files made by hand."""

import json
from collections import Counter
from pathlib import Path

import pytest
from report_readers import assert_contained, shown_table, shown_tables
from report_seasons import contents

from benchmark.analysis.board_orders import board_orders
from benchmark.analysis.claim_ledger import (
    KEY,
    Group,
    LedgerRow,
    ledger,
    same_comparisons,
    untested_reasons,
)
from benchmark.analysis.season_claims import (
    DRAWN,
    Compared,
    Judged,
    Leader,
    Measured,
    Place,
    SeasonClaims,
    read_seasons,
)
from benchmark.analysis.verdict_rules import Conclusion, Size
from benchmark.commands.ledger import ROOT, write_ledger
from benchmark.core.errors import UserError
from benchmark.core.files import write_json
from benchmark.papers.printed_tables import papers
from benchmark.report.ledger_figure import (
    ELSEWHERE,
    SIDE,
    alt_text,
    has_scale,
    ledger_figure,
    unit_of,
)
from benchmark.report.pages.ledger_pages import (
    claim_table,
    claim_tables_of,
    order_table,
    statement,
)
from benchmark.report.pages.ledger_sentences import (
    budget_notes,
    finding_line,
    headline,
    leader_line,
    opening,
    order_line,
    stricter,
    trust_line,
)
from benchmark.report.papers_figure import papers_figure
from datasets import people, shapes

CLAIM = papers()["scan"].claims[0]
COMMITTED = Path(__file__).parent.parent / "reports"


def compared(**facts: object) -> Compared:
    """2 points of 4 that are printed."""
    known = {
        "first": "A",
        "second": "B",
        "pairs": 1,
        "metric": "rsum",
        "decimals": 1,
        "difference": 2.0,
        "low": 1.0,
        "high": 3.0,
        "p": None,
        "is_of_these_trainings": False,
        "printed": 4.0,
        "margin": 1.5,
        "size": Size.SMALLER,
    }
    return Compared(**(known | facts))


def judged(conclusion: str, claim: str = CLAIM.id, /, **facts: object) -> Judged:
    is_run = conclusion != Conclusion.NOT_RUN
    return Judged(
        paper="scan",
        id=claim,
        conclusion=Conclusion(conclusion),
        reason="the reason",
        is_elsewhere=False,
        cautions=["not converged: A"] if is_run else [],
        compared=compared(**facts) if is_run else None,
    )


def places(rows: dict[str, tuple[float, str]]) -> list[Place]:
    """title -> mean and letters"""
    return [Place(title=title, mean=mean, letters=own) for title, (mean, own) in rows.items()]


def season(name: str, *claims: Judged, **facts: object) -> SeasonClaims:
    """Its dataset is its own unless the facts name one."""
    leader = Leader(
        task="retrieval",
        metric="rsum",
        low=190.0,
        high=210.0,
        is_compared=True,
        places=places({"A | b": (200.0, "a"), "B": (195.0, "ab"), "C": (80.0, "b"), "D": (9, "c")}),
        unconverged=2,
        few_seeds=0,
        lacks=["extra input"],
    )
    known = {"title": f"Data of {name}", "dataset": f"d_{name}", "images": 1000, "budgets": {}}
    known["split"] = "official"
    measured = Measured(leaders=[leader], claims=list(claims), **(known | facts))
    about = {"title": f"Season {name}", "commits": ["abc"], "versions": ["2.0"]}
    return SeasonClaims(season=name, datasets=[measured], **about)


def row(*claims: Judged) -> LedgerRow:
    """The first claim of SCAN, judged so by one season after the other."""
    told = [season(f"s{number}", claim) for number, claim in enumerate(claims)]
    return next(r for r in ledger(told) if (r.paper, r.claim.id) == ("scan", CLAIM.id))


@pytest.mark.parametrize(
    ("conclusions", "group"),
    [
        (["not run"], "untested"),
        (["undecided", "not run"], "undecided"),
        (["holds", "undecided"], "replicated"),
        (["holds", "reversed"], "mixed"),
        (["holds", "no difference beyond the margin"], "mixed"),
        (["undecided", "no difference beyond the margin"], "null"),
        (["no difference beyond the margin", "reversed"], "reversed"),
        (["does not hold: better"], "unlike"),
        (["does not hold: worse", "undecided"], "unlike"),
    ],
)
def test_the_group_follows_from_all_findings(conclusions, group):
    sizes = {"size": Size.AS_PRINTED}
    assert row(*(judged(word, **sizes) for word in conclusions)).group == group


def test_smaller_is_what_is_smaller_wherever_it_was_tested():
    assert row(judged("holds"), judged("holds")).group == Group.SMALLER
    mixed = judged("holds"), judged("holds", size=Size.AS_PRINTED)
    assert row(*mixed).group == Group.REPLICATED
    beside_undecided = judged("holds"), judged("undecided", size=Size.OPPOSITE)
    assert row(*beside_undecided).group == Group.SMALLER


def test_a_claim_with_several_tests_has_several_chances():
    """One of two tests at p 0.03 is one of 0.06 with Bonferroni's adjustment over both."""
    lucky, sure = judged("holds", p=0.03), judged("holds", p=0.02)
    failed, within = judged("reversed", p=0.03), judged("no difference beyond the margin")
    undecided = judged("undecided")
    assert row(lucky, undecided).stricter_group == Group.UNDECIDED
    assert row(lucky).stricter_group == row(sure, undecided).stricter_group == Group.SMALLER
    assert row(lucky, within).stricter_group == row(lucky, failed, within).stricter_group == "null"
    assert stricter([row(sure), row(lucky)]) == ""
    rows = [row(lucky, undecided), row(sure, undecided), row(failed, undecided), row(within)]
    assert stricter(rows).endswith(
        "1 of the 2 claims that hold would not and 1 of the 2 claims that fail would not."
    )


def test_what_claims_no_difference_cannot_be_smaller_than_printed():
    denied = next(claim for claim in papers()["scan"].claims if claim.kind != "ordered")
    told = [season("s", judged("holds", denied.id))]
    (of_claim,) = (r for r in ledger(told) if r.claim.id == denied.id and r.paper == "scan")
    assert of_claim.group == Group.REPLICATED


def test_a_sentence_on_other_data_is_the_same_comparison_here():
    elsewhere = judged("holds").model_copy(update={"is_elsewhere": True})
    assert statement(row(elsewhere)) == f"Said of other data: {CLAIM.statement}"
    assert statement(row(elsewhere, judged("holds"))) == CLAIM.statement
    assert statement(row(judged("not run"))) == CLAIM.statement
    drawn = [text.get_text() for text in ledger_figure([row(elsewhere)]).axes[0].texts]
    assert any(text.endswith(ELSEWHERE) for text in drawn)


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        ([{}], ""),
        ([{"seeds": 1}], "1 more seed"),
        ([{"seeds": 12, "images": 900}, {"seeds": 3}], "3 more seeds"),
        ([{"images": 51_201}, {}], "52,000 images"),
        ([{"images": 51_201, "seeds_beside": 2}], "52,000 images with 2 more seeds"),
    ],
)
def test_what_would_decide_it_is_the_least_of_all_datasets(needs, words):
    assert row(*(judged("undecided", **facts) for facts in needs)).needs == words


def test_each_test_names_what_it_needs_itself():
    of_all = row(judged("holds"), judged("undecided", seeds=3), judged("undecided", images=900))
    table = claim_table([of_all], Counter())
    column = table.heads.index("needed")
    assert [line[column].text for line in table.entries] == ["-", "3 more seeds", "900 images"]


def test_an_untested_claim_says_the_reason_of_each_season():
    reasons = ["a was not played", "a was not played", "b was not played"]
    not_run = judged("not run")
    own = row(*(not_run.model_copy(update={"reason": reason}) for reason in reasons))
    assert own.lacking == "a was not played in s0, s1; b was not played in s2"
    assert row(not_run, not_run).lacking == "the reason"
    assert row(judged("holds")).lacking == ""


def test_a_row_as_by_chance_is_named_beside_its_finding():
    of_claim = judged("holds")
    cautions = ["near chance: B", "not converged: A"]
    (finding,) = row(of_claim.model_copy(update={"cautions": cautions})).findings
    assert finding_line(finding).endswith(" (near chance: B)")
    (finding,) = row(of_claim).findings
    assert "chance" not in finding_line(finding)


def test_every_claim_has_a_row_once_and_groups_are_in_order():
    rows = ledger([season("s", judged("holds"))])
    told = [(r.paper, r.claim.id) for r in rows]
    assert sorted(told) == sorted((n, c.id) for n, p in papers().items() for c in p.claims)
    order = [list(Group).index(r.group) for r in rows]
    assert order == sorted(order) and len(set(order)) == 2


def test_a_printed_difference_is_drawn_as_one_and_a_denied_one_by_its_margin():
    asserted = row(judged("holds"))
    assert unit_of(asserted, compared(printed=-4.0)) == 4.0
    assert unit_of(asserted, compared(printed=None)) == 1.5
    assert unit_of(asserted, compared(printed=None, margin=0.0, difference=-7.0)) == 7.0
    denied = next(r for r in ledger([]) if r.claim.kind == "alike")
    assert unit_of(denied, compared()) == 1.5


def test_without_a_printed_difference_and_a_margin_only_the_side_is_drawn():
    facts = {"printed": None, "margin": 0.0, "difference": 7.0, "low": 6.0, "high": 8.0}
    assert not has_scale(compared(**facts)) and has_scale(compared(printed=None))
    (axes,) = ledger_figure([row(judged("holds", **facts))]).axes
    assert not axes.collections[1:]  # no interval: the first is the ground of what is opposite
    (point,) = (line for line in axes.lines if line.get_markerfacecolor() == "white")
    assert list(point.get_xdata()) == [SIDE]


def test_a_table_has_a_row_per_finding():
    told = row(judged("undecided", seeds=3), judged("holds", low=None, high=None))
    table = claim_tables_of({Group.SMALLER: [told]})[Group.SMALLER]
    first, second = (dict(zip(table.heads, r, strict=True)) for r in table.rows)
    assert first["claim"] == CLAIM.statement and second["claim"] == ""
    assert first["difference, 95% interval"] == "rsum +2.0 [+1.0,\N{NO-BREAK SPACE}+3.0]"
    assert second["difference, 95% interval"] == "rsum +2.0"
    assert (first["data"], first["printed"]) == ("Data of s0 (s0)", "+4.0")
    assert (first["verdict"], second["verdict"]) == ("undecided", "holds")


@pytest.mark.parametrize(
    ("conclusions", "extent"),
    [
        (["reversed", "undecided"], "the opposite in 1 of 2 tests"),
        (["does not hold: better", "does not hold: worse"], "a difference in 2 of 2 tests"),
        (["holds", "reversed", "undecided"], "holds in 1 of 3 tests"),
        (["undecided", "no difference beyond the margin"], "no difference in 1 of 2 tests"),
        (["undecided"], "undecided in 1 of 1 test"),
        (["holds", "undecided"], "holds, by less than printed, in 1 of 2 tests"),
    ],
)
def test_a_group_says_in_how_many_tests_it_is_so(conclusions, extent):
    size = Size.SMALLER if "by less" in extent else Size.AS_PRINTED
    assert row(*(judged(word, size=size) for word in conclusions)).extent == extent


def test_every_group_and_every_verdict_is_in_the_key():
    assert list(KEY) == list(Group)
    assert {verdict for meaning in KEY.values() for verdict in meaning.verdicts} == {*Conclusion}


def test_of_a_claim_on_several_pairs_the_one_that_decides_is_named():
    told = row(judged("reversed", pairs=2), judged("holds"))
    table = claim_tables_of({Group.MIXED: [told]})[Group.MIXED]
    first, second = (dict(zip(table.heads, r, strict=True)) for r in table.rows)
    assert first["difference, 95% interval"].endswith("(A against B)")
    assert "against" not in second["difference, 95% interval"]


def test_claims_that_compare_the_same_pair_share_a_letter():
    ids = [claim.id for claim in papers()["scan"].claims[:4]]
    claims = [
        judged("holds", ids[0]),
        judged("holds", ids[1], first="B", second="A"),
        judged("holds", ids[2], metric="S"),
        judged("holds", ids[3], second="C"),
    ]
    assert same_comparisons(ledger([season("s", *claims)])) == {
        ("scan", ids[0]): "a",
        ("scan", ids[1]): "a",
    }


def test_untested_claims_are_counted_alike_in_the_picture_and_on_the_page():
    rows = ledger([])
    reasons = untested_reasons(rows)
    assert sum(map(len, reasons.values())) == len(rows)
    unplayable = sum(bool(r.claim.unplayed) for r in rows)
    untrained = sum(bool(r.claim.weights) for r in rows)
    assert unplayable and untrained and not any(r.claim.unplayed and r.claim.weights for r in rows)
    (title, *_, note) = [text.get_text() for text in ledger_figure(rows).texts]
    assert note == (
        f"{len(rows)} more claims are untested: {unplayable} about what nothing here can "
        f"measure, {untrained} about trained networks whose weights no season had, "
        f"{len(rows) - unplayable - untrained} playable, and run by no season yet."
    )
    assert title.startswith("How much")


def test_the_picture_is_told_from_its_findings():
    told = alt_text([row(judged("holds"), judged("undecided"))])
    assert "1 smaller" in told and "each of 1 tested claims" in told
    assert "Of 2 tests (Data of s0 (s0), Data of s1 (s1)): 1 holds, 1 undecided." in told


def test_boards_of_one_dataset_say_what_of_their_budgets_differs():
    few, many = ({"A": {"epochs": "3", "size": "8"}, "B": {"size": "8"}} for _ in range(2))
    many["A"] = {"size": "8"}
    told = [
        season(name, dataset="d", title="D", budgets=b) for name, b in (("s", few), ("t", many))
    ]
    assert budget_notes(told) == [
        "Dataset d (D) is on 2 boards, of the seasons s and t, whose budgets differ: of 2 rows "
        "that they share, 1 has other values of epochs. Compare rows of one board only."
    ]
    alike = [season(name, dataset="d", title="D", budgets=few) for name in "st"]
    assert budget_notes(alike)[0].endswith("with the same budget for the 2 rows that they share.")
    single = {"A": {"epochs": "3"}}
    of_one = budget_notes([season(name, dataset="d", budgets=single) for name in "st"])
    assert of_one[0].endswith("with the same budget for the 1 row that they share.")
    assert budget_notes([season("s", title="D"), season("t", title="D")]) == []


def test_the_page_opens_with_what_was_learned():
    rows = ledger([season("s", judged("reversed"), images=70), season("t", images=90)])
    tally, largest, failure, replays = opening([season("s"), season("t", images=2000)], rows)
    assert tally == "Of 1 tested claim, 1 turns out the other way round."
    assert largest.startswith("On Data of t, with 2,000 test images, the best at retrieval is A")
    assert CLAIM.statement.rstrip(".") in failure and "reversed, rsum" in failure
    assert "4 of 8 rows had not converged" in replays


def test_what_the_code_draws_has_the_split_by_which_the_ledger_knows_it():
    assert {shapes.CARD.split, people.CARD.split} == {DRAWN}


def test_photographs_come_before_drawings():
    drawn, photographs = season("s", images=2000, split="drawn"), season("t")
    said = opening([drawn, photographs], [])[1]
    first, second = said.index("On Data of t, with 1,000 test images"), said.index("On Data of s")
    assert first < second and "with 2,000 drawn test images, the best" in said


@pytest.mark.parametrize(
    ("conclusion", "said"),
    [
        ("holds", "1 that hold"),
        ("reversed", "1 that turn out the other way round"),
        ("no difference beyond the margin", "1 with no difference"),
        ("undecided", ""),
    ],
)
def test_claims_that_drawings_alone_decide_are_counted(conclusion, said):
    def opened(*splits: str) -> str:
        told = [season(f"s{n}", judged(conclusion), split=split) for n, split in enumerate(splits)]
        return opening(told, ledger(told))[0]

    assert opened("drawn", "drawn").endswith(
        f" On drawings only: {said}." if said else "undecided."
    )
    assert "drawings" not in opened("drawn", "official")
    told = [season("s", judged(conclusion), split="drawn")]
    told += [season("t", judged("undecided"), split="official")]
    assert ("On drawings only" in opening(told, ledger(told))[0]) == bool(said)


def test_a_bar_has_a_part_for_each_group_and_its_claims_on_drawings():
    second = [claim for claim in papers()["scan"].claims if claim.presets][1]
    rows = ledger([season("s", judged("holds"), judged("reversed", second.id), split="drawn")])
    figure = papers_figure(rows)
    bars = [bar for bar in figure.axes[0].patches if bar.get_width()]
    scan = list(papers()).index("scan")
    of_scan = [bar for bar in bars if round(bar.get_y() + bar.get_height() / 2) == scan]
    widths = [(bar.get_width(), bar.get_hatch()) for bar in of_scan]
    untested = sum(row.paper == "scan" for row in rows) - 2
    assert widths == [(1, "////"), (1, "////"), (untested, None)]
    assert sum(bar.get_width() for bar in bars) == len(rows)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    said = ["smaller: holds, by less than printed", "reversed: the opposite", "untested"]
    assert labels == [*said, "on drawings only"]


def test_the_claim_that_fails_in_most_tests_is_named_whatever_its_group():
    """One is reversed in one of two tests, the other one shows no difference in two of two."""
    first, second = [claim for claim in papers()["scan"].claims if claim.presets][:2]
    told = [
        season("s", judged("reversed"), judged("no difference beyond the margin", second.id)),
        season("t", judged("undecided"), judged("no difference beyond the margin", second.id)),
    ]
    failure = opening(told, ledger(told))[2]
    assert (
        second.statement.rstrip(".") in failure
        and failure.count("no difference beyond the margin") == 2
    )


@pytest.mark.parametrize(("side", "better"), [("better", "A"), ("worse", "B")])
def test_where_a_claim_of_no_difference_fails_the_better_one_is_named(side, better):
    (finding,) = row(judged(f"does not hold: {side}")).findings
    assert finding_line(finding).endswith(f"(better: {better})")
    (alone,) = row(judged(f"does not hold: {side}", second="")).findings
    assert "(better" not in finding_line(alone)


def test_unequal_settings_stand_beside_the_verdict():
    of = judged("holds").model_copy(
        update={"cautions": ["not converged: A", "unequal settings: x 1 and 2"]}
    )
    (finding,) = row(of).findings
    assert finding_line(finding).endswith("(unequal settings: x 1 and 2)")


def test_of_mixed_claims_the_one_that_fails_in_most_tests_is_the_clearest_failure():
    """CLAIM fails in one of four tests, another one in three of four."""
    first, *others = [claim for claim in papers()["scan"].claims if claim.presets][:2]
    assert first == CLAIM and others
    mostly = [judged("holds"), judged("holds"), judged("holds"), judged("reversed")]
    seldom = [judged("holds"), judged("reversed"), judged("reversed"), judged("reversed")]
    told = [
        season(f"s{number}", a, b.model_copy(update={"id": others[0].id}))
        for number, (a, b) in enumerate(zip(mostly, seldom, strict=True))
    ]
    failure = opening(told, ledger(told))[2]
    assert others[0].statement.rstrip(".") in failure


def test_a_headline_claim_is_answered_in_a_sentence():
    assert headline(row(judged("holds"), judged("undecided"))) == (
        "Holds, by less than printed, in 1 of 2 tests: Data of s0 (s0) holds, rsum +2.0 "
        "[+1.0,\N{NO-BREAK SPACE}+3.0]; Data of s1 (s1) undecided, rsum +2.0 "
        "[+1.0,\N{NO-BREAK SPACE}+3.0]; printed +4.0."
    )
    assert headline(row(judged("not run"))) == "Untested: playable, and run by no season yet."


def test_the_leader_stands_with_rivals_and_what_its_board_lacks():
    (leader,) = season("s").datasets[0].leaders
    assert leader_line(leader) == (
        "A | b, rsum 200.0 [190.0,\N{NO-BREAK SPACE}210.0]; 1 of 3 others cannot be told apart "
        "from it."
    )
    assert trust_line(leader) == "A | b: extra input. Of the board: not converged 2 of 4 rows"
    apart = [place.model_copy(update={"letters": str(n)}) for n, place in enumerate(leader.places)]
    nothing = {"places": apart, "unconverged": 0, "low": None, "high": None, "lacks": []}
    alone = leader.model_copy(update=nothing)
    assert leader_line(alone) == "A | b, rsum 200.0; 3 of 3 others can be told apart from it."
    assert trust_line(alone) == ""
    untold = leader.model_copy(update={"is_compared": False})
    assert leader_line(untold).endswith("of 4 rows, none of which was compared with another.")


def board(name: str, rows: dict[str, tuple[float, str]], **facts: object) -> SeasonClaims:
    """A season with one board, whose rows have one budget."""
    own = season(name, title="D", budgets={title: {"epochs": "3"} for title in rows}, **facts)
    leader = own.datasets[0].leaders[0].model_copy(update={"places": places(rows)})
    own.datasets[0].leaders[:] = [leader]
    return own


class TestOrders:
    FIRST = {"A": (90, "a"), "B": (80, "b"), "C": (70, "c"), "D": (60, "cd"), "E": (50, "d")}
    SECOND = {"B": (45, "a"), "A": (40, "a"), "C": (33, "a"), "E": (32, "a"), "D": (20, "a")}

    def test_pairs_that_turn_are_counted_and_the_widest_is_named(self):
        """Of ten pairs A and B turn, by 10 and 5, and D and E, by 10 and 12, which no board tells
        apart; nor does one C and D."""
        (order,) = board_orders([board("s", self.FIRST), board("t", self.SECOND)])
        assert order.tau == pytest.approx(1 - 2 * 2 / 10)
        assert order.turned == [("D", "E"), ("A", "B")]
        assert order_line(order) == (
            "D, in the seasons s and t: of the 10 pairs of 5 rows with the same budget, 8 stand in "
            "the same order (Kendall's tau 0.60); of the 8 that one of the boards tells apart, 7. "
            "The widest turn: D is 10.0 rsum above E in s, 12.0 below it in t."
        )
        entries = order_table(order).rows
        assert entries[0] == ["A", "90.0 (1)", "40.0 (2)"]
        assert entries[3] == ["D", "60.0 (4)", "20.0 (5)"]

    def test_boards_of_the_same_order_name_no_pair(self):
        (order,) = board_orders([board("s", self.FIRST), board("t", self.FIRST)])
        assert order.tau == 1 and order_line(order).endswith(
            "of the 8 that one of the boards tells apart, 8."
        )

    def test_rows_of_other_budgets_and_boards_of_other_pictures_are_left_out(self):
        first, second = board("s", self.FIRST), board("t", self.SECOND)
        second.datasets[0].budgets["E"] = {"epochs": "4"}
        assert board_orders([first, second]) == []  # four rows are left
        assert board_orders([first, board("t", self.SECOND, images=7)]) == []
        assert board_orders([first, board("t", self.SECOND, split="another")]) == []

    def test_equal_means_have_no_order(self):
        alike = dict.fromkeys(self.FIRST, (50, "a"))
        assert board_orders([board("s", self.FIRST), board("t", alike)]) == []
        (order,) = board_orders([board("s", self.FIRST), board("t", alike | {"E": (40, "a")})])
        assert (order.pairs, order.turned, order.tau) == (4, [], 1.0)
        said = "of the 4 pairs of 5 rows with the same budget that differ on both boards, 4 stand"
        assert said in order_line(order)


class TestPages:
    @pytest.fixture
    def written(self, tmp_path, monkeypatch) -> Path:
        monkeypatch.chdir(tmp_path)
        for told in (season("one", judged("holds")), season("two", judged("reversed"))):
            write_json(ROOT / told.season / "claims.json", told.model_dump(mode="json"))
        return write_ledger()

    def test_a_reader_finds_counts_surprises_and_what_is_open(self, written):
        text = written.read_text()
        total = sum(len(paper.claims) for paper in papers().values())
        assert f"Of {total} claims of the papers, 1 were tested." in text
        assert f"mixed (holds in 1 of 2 tests): **{CLAIM.statement}**" in text
        assert "Data of one (one) holds, rsum +2.0" in text
        assert '1 on presets marked "not converged"' in text
        assert "**not converged**: the validation score" in text
        assert [r["in the ledger"] for r in shown_table(text, "in the ledger").records()] == [
            *Group
        ]
        counts = shown_table(text, "mixed").records()
        assert [r["mixed"] for r in counts] == ["0", "0", "1", "0"]
        assert sum(int(r["untested"]) for r in counts) == total - 1
        for path in ROOT.glob("*.md"):
            assert_contained(path)

    def test_the_same_files_give_the_same_bytes(self, written):
        first = contents(ROOT)
        pictures = {
            f"reports/{name}.{kind}" for name in ("papers", "ledger") for kind in ("png", "svg")
        }
        assert pictures | {"reports/fidelity.md"} <= set(first)
        write_ledger()
        assert contents(ROOT) == first

    def test_fidelity_has_a_key_to_papers_and_code(self, written):
        key = shown_tables((ROOT / "fidelity.md").read_text())[0]
        assert key.heads == ["method", "paper", "code of the authors"]
        methods = {r[0]: r[2] for r in key.rows}
        assert methods["scan"] == "repository" and methods["cyclematch"] == "not published"
        assert "github.com/kuanghuei/SCAN" in (ROOT / "fidelity.md").read_text()

    def test_without_any_season_the_command_is_named(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(UserError, match="python -m benchmark report"):
            write_ledger()

    def test_a_file_that_is_none_names_itself(self, written):
        path = ROOT / "two/claims.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"season": 3}))
        with pytest.raises(UserError, match="two/claims.json"):
            read_seasons(ROOT)

    @pytest.mark.parametrize("name", ["one", "two](http://x.org) [y"])
    def test_a_season_has_the_name_of_its_folder(self, written, name):
        path = ROOT / "two/claims.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"season": name}))
        with pytest.raises(UserError, match="two/claims.json: season"):
            read_seasons(ROOT)


@pytest.mark.skipif(
    not (COMMITTED / "README.md").is_file(), reason="no ledger is committed: run the command"
)
def test_the_committed_ledger_is_what_the_committed_reports_give(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in COMMITTED.glob("*/claims.json"):
        target = ROOT / path.parent.name / path.name
        target.parent.mkdir(parents=True)
        target.write_bytes(path.read_bytes())
    write_ledger()
    for name in ("README.md", "fidelity.md", "papers.svg", "ledger.svg"):
        assert (ROOT / name).read_bytes() == (COMMITTED / name).read_bytes(), name
