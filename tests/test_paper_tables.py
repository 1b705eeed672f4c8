"""The papers' tables against made-up records whose numbers are worked out by hand, and
against the YAML files, read here as what they are."""

from pathlib import Path

import builders
import numpy as np
import pytest
import yaml
from refusals import holds

from benchmark.boards.boards import Board
from benchmark.core.records import Aspect, Departure
from benchmark.papers import printed_tables
from benchmark.papers.printed_tables import About, Paper, Row, papers
from benchmark.report.pages.paper_tables import (
    measured_cell,
    obstacles,
    obstacles_of_rows,
    paper_table,
    shown_tables,
    unmeasured,
)
from benchmark.report.tables import DAGGER, NONE, Number
from benchmark.scoring import METRICS

IMAGES, EACH = 40, 2
OWNER = np.repeat(np.arange(IMAGES), EACH)
RECALLS = [f"{way}_r{k}" for way in ("i2t", "t2i") for k in (1, 5, 10)]
HEADS = ["i2t R@1", "i2t R@5", "i2t R@10", "t2i R@1", "t2i R@5", "t2i R@10"]
FLICKR, COCO, PERSONS = "flickr30k/test", "mscoco_1k/test", "cuhk_pedes/test"
PRINTED = [60.0, 100.0, 99.9, 50.0, 49.0, None]
FOLDER = Path(printed_tables.__file__).parent

# Every second image is found at once and the others fourth: R@1 50, R@5 and R@10 100.
# Of an image's captions the first finds it at once and the second eighth: 50, 50, 100.
# In every resample of the images as well, for t2i and for what is 100; half of 40
# images give 50 -+ 15.
HALF = {"i2t": np.tile([0, 3], IMAGES // 2), "t2i": np.tile([0, 7], IMAGES)}
ALL = {"i2t": np.zeros(IMAGES, int), "t2i": np.zeros(IMAGES * EACH, int)}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for dataset in ("flickr30k", "mine"):
        builders.prepare(dataset, OWNER)


def board(
    dataset: str = "flickr30k",
    preset: str = "own",
    seeds: tuple = (HALF,),
    **changes: object,
) -> Board:
    """One preset, run with these ranks, on a dataset that is read by the module of its
    name."""
    outcomes = []
    for seed, ranks in enumerate(seeds):
        facts = {"dataset": dataset, "status": "ok" if ranks else "failed"} | changes
        made = builders.outcome(
            preset, seed, ranks=ranks, seconds={"per_pair": 2e-6}, **facts
        )
        outcomes.append(made)
    card = {"title": f"The {dataset}", "split": "karpathy", "reader": dataset}
    return builders.board(builders.standing(preset, outcomes), dataset=dataset, **card)


def paper_of(*rows: Row, metrics: list[str] | None = None) -> Paper:
    table = printed_tables.Table(
        title="Results", metrics=metrics or RECALLS, rows=list(rows)
    )
    splits = dict.fromkeys(("flickr30k", "mscoco_1k", "mscoco_5k"), "karpathy")
    about = About(
        title="t", authors="a", year=2018, venue="v", source="s", splits=splits
    )
    return Paper(paper=about, tables={"7": table}, claims=[])


def own(numbers: list, place: str = FLICKR, **facts: object) -> Row:
    return Row(**({"label": "Ours", "preset": "own"} | facts), numbers={place: numbers})


def lines(paper: Paper, of: Board, place: str = FLICKR) -> list[dict]:
    return paper_table(paper, "7", place, of).frame.to_dict("records")


def values(line: dict) -> list[float | None]:
    return [line[head].value for head in HEADS]


def ends(cell: Number) -> tuple[float, float]:
    return cell.low, cell.high


class TestComparable:
    def test_a_cell_has_the_printed_and_the_measured_number(self):
        (line,) = lines(paper_of(own(PRINTED)), board())
        assert [line[head].printed.value for head in HEADS] == PRINTED
        assert values(line) == [50.0, 100.0, 100.0, 50.0, 50.0, 100.0]
        assert (line["rsum"].printed.value, line["rsum"].value) == (None, 450.0)
        assert line["comparable"] == "yes"
        assert str(line["i2t R@1"]).startswith("60.0\xa0\N{RIGHTWARDS ARROW} 50.0 [")

    def test_the_interval_of_one_seed_is_over_the_images_and_marked(self):
        """Wilson's of 40 images: 50 -+ 15, and 100 - 8.8 where all of them hit; of t2i
        each image hits with one of two captions, which is no reason to be surer."""
        (line,) = lines(paper_of(own(PRINTED)), board())
        assert {line[head].note for head in HEADS} == {DAGGER}
        assert ends(line["i2t R@1"]) == pytest.approx((34.5, 65.5), abs=3)  # 1.96 x 7.9
        points = [tuple(np.round(ends(line[head]), 1)) for head in HEADS[1:]]
        assert points == [
            (91.2, 100),
            (91.2, 100),
            (35.2, 64.8),
            (35.2, 64.8),
            (91.2, 100),
        ]
        assert ends(line["rsum"]) == pytest.approx((434.5, 465.5), abs=3)
        # Of 50 and of 100: so far apart that nothing is known, but that R@1 is at most
        # 100.
        (line,) = lines(paper_of(own(PRINTED)), board(seeds=(HALF, ALL)))
        assert line["i2t R@1"].value == 75.0 and line["i2t R@1"].note == ""
        assert ends(line["i2t R@1"]) == (0, 100)


RANDOM = Departure(aspect=Aspect.RANDOM_TEXT_WEIGHTS, texts="sentence")
PHRASES = Departure(aspect=Aspect.TEXTS_STANDARDISED, texts="phrase")
NETWORK = Departure(aspect=Aspect.IMAGE_NETWORK, here="cnn")
BOTH = {"departures": [NETWORK], "scaled": ["epochs"]}


@pytest.mark.parametrize(
    ("place", "changes", "reason"),
    [
        ("flickr30k/val", {}, "other split"),
        (FLICKR, {"scaled": ["epochs"]}, "other budget"),
        (FLICKR, {"departures": [RANDOM]}, "other features, random text encoder"),
        (FLICKR, {"departures": [PHRASES]}, "other features, extra input"),
        (FLICKR, {"starts_alike": True}, ""),
        (COCO, BOTH, "other dataset, other features, other budget"),
    ],
)
def test_what_cannot_be_compared_says_why(place, changes, reason):
    (line,) = lines(paper_of(own(PRINTED, place)), board(**changes), place)
    assert line["comparable"] == (f"no: {reason}" if reason else "yes")
    assert line["remark"] is None and values(line)[0] == 50.0


@pytest.mark.parametrize(
    ("place", "card", "reason"),
    [
        (FLICKR, {"reader": "flickr30k"}, ""),
        (FLICKR, {"reader": "flickr30k_entities"}, ""),  # the same images and captions
        (COCO, {"reader": "mscoco"}, ""),
        ("mscoco_5k/test", {"reader": "mscoco"}, ""),  # one dataset, judged in two ways
        (COCO, {"reader": "flickr30k"}, "other dataset"),
        (PERSONS, {"reader": "cuhk_pedes"}, "other split"),
        (
            PERSONS,
            {"reader": "cuhk_pedes", "options": {"release": "RSTPReid"}},
            "other dataset",
        ),
        (
            COCO,
            {"reader": "mscoco", "split": "karpathy_without_restval"},
            "other split",
        ),
    ],
)
def test_the_reader_and_the_partition_decide(place, card, reason):
    """A season names its datasets as it likes."""
    played = board("mine")
    played.card.update(card)
    paper = paper_of(own(PRINTED, place))
    reasons = obstacles(paper, played, played.rows[0], place)
    assert reasons == ([reason] if reason else [])
    assert obstacles_of_rows(paper, played) == {tuple(reasons)}


class TestFolds:
    """Two folds of 20 images; of 5K the table has the whole split, of 1K the means of
    the folds."""

    # Rank within the fold of every image 0 but for ten of the second: R@1 of the folds
    # 100 and 50, R@5 and R@10 100; every caption has 0. Of the whole split no rank is
    # below 1.
    FOLD = {
        "i2t_fold": np.repeat([0, 0, 1, 0], [20, 0, 10, 10]),
        "t2i_fold": np.zeros(IMAGES * EACH, int),
    }
    METRICS = {
        **{f"fold_{way}_r{k}": 100.0 for way in ("i2t", "t2i") for k in (5, 10)},
        "fold_i2t_r1": 75.0,
        "fold_t2i_r1": 100.0,
        "fold_i2t_medr": 1.0,
        "fold_rsum": 575.0,
    }

    def board(self) -> Board:
        whole = {way: 1 + ranks for way, ranks in ALL.items()}
        played = board("mine", seeds=(whole | self.FOLD,), metrics=self.METRICS)
        played.card.update(reader="mscoco", folds=2)
        return played

    def test_1k_is_the_mean_of_the_folds(self):
        (line,) = lines(paper_of(own(PRINTED, COCO)), self.board(), COCO)
        assert values(line) == [75.0, 100.0, 100.0, 100.0, 100.0, 100.0]
        assert line["rsum"].value == 575.0
        # Wilson's of 30 of 40 images, and of a sum with the same variance
        assert ends(line["i2t R@1"]) == pytest.approx((59.6, 85.9), abs=1)
        assert ends(line["t2i R@1"]) == pytest.approx((91.2, 100), abs=0.1)
        assert ends(line["rsum"]) == pytest.approx((557.8, 585.4), abs=1.5)


def test_why_there_is_nothing_beside_a_row_is_said():
    lost = {"seeds": ({}, {}), "status": "failed", "reason": "the loss is NaN"}
    few = {"seeds": ({},), "status": "not_applicable", "reason": "needs 5 captions"}
    unplayed = Row(label="Ours", unplayed="not yet", numbers={FLICKR: PRINTED})
    for row, facts, remark in (
        (own(PRINTED), {"preset": "other"}, "not run"),
        (own(PRINTED), lost, "failed: the loss is NaN"),
        (own(PRINTED), few, "not applicable: needs 5 captions"),
        (unplayed, {}, "not yet"),
    ):
        (line,) = lines(paper_of(row), board(**facts))
        assert line["comparable"] is None and holds(line["remark"], remark)
        assert values(line) == [None] * 6 and line["i2t R@1"].printed.value == 60.0
        assert shown_tables(paper_of(row), board(**facts)) == {}
        assert unmeasured(paper_of(row), [board(**facts)]) == ["7"]
    # Of a preset that failed with one seed the others count.
    (line,) = lines(paper_of(own(PRINTED)), board(seeds=({}, HALF)))
    assert line["i2t R@1"].value == 50.0 and line["comparable"] == "yes"


def test_half_of_an_rsum_stands_beside_no_printed_one():
    one_way = board()
    one_way.card["ways"] = ["t2i"]
    numbers = [60.0, 100.0, 99.9, 50.0, 49.0, 90.0]
    for played, measured in ((board(), 450.0), (one_way, None)):
        (line,) = lines(paper_of(own(numbers)), played)
        assert line["rsum"].printed.value == pytest.approx(448.9)
        assert line["rsum"].value == measured
        assert line["t2i R@1"].value == 50.0


def test_a_time_is_the_median_of_its_trainings():
    per_pair = [1e-6, 2e-6, 9e-6]
    cells = []
    for seed, seconds in enumerate(per_pair):
        cells.append(
            builders.outcome("own", seed, ranks=HALF, seconds={"per_pair": seconds})
        )
    played = builders.board(builders.standing("own", cells), dataset="flickr30k")
    assert str(measured_cell(played, played.rows[0], "per_pair")) == "2.00"


class TestPage:
    def test_all_own_rows_of_a_table_with_a_measured_one_stand_there_at_every_place(
        self,
    ):
        rows = [own([60.0, 9.0]), own([61.0, 8.0], label="Theirs", preset="not run")]
        coco = Row(label="Big", preset="not run", numbers={COCO: [70.0, 7.0]})
        lost = Row(label="Lost", unplayed="no code", numbers={FLICKR: [1.0, 2.0]})
        paper = paper_of(*rows, coco, lost, metrics=["i2t_r1", "i2t_r5"])
        here, elsewhere = shown_tables(paper, board("mine"))["7"]
        assert list(here.frame["row"]) == ["Ours", "Theirs", "Lost"]
        shown = [str(cell) for cell in here.frame["i2t R@1"]]
        assert shown[0].startswith("60.0\xa0\N{RIGHTWARDS ARROW} 50.0 [")
        assert shown[1:] == [
            f"{n}\xa0\N{RIGHTWARDS ARROW} {NONE}" for n in ("61.0", "1.0")
        ]
        assert [list(row) for row in elsewhere.frame.astype(str).to_numpy()] == [
            ["Big", *(f"{n}\xa0\N{RIGHTWARDS ARROW} {NONE}" for n in ("70.0", "7.0"))]
        ]
        (alone,) = shown_tables(paper, board())["7"]  # on Flickr30K its own place alone
        assert alone.title.startswith("Table 7: Results, flickr30k/test")
        assert shown_tables(paper, board(preset="other")) == {}

    def test_no_rows_of_others_and_only_measured_columns_stand_there(self):
        other = Row(
            label="VSE++", setting="VGG; [1]", note="n", numbers={FLICKR: [1.5, 7.0]}
        )
        both = paper_of(other, own([60.0, 9.0]), metrics=["i2t_r1", "s2s_r1"])
        (table,) = shown_tables(both, board())["7"]
        assert list(table.frame) == ["row", "i2t R@1"] and list(table.frame["row"]) == [
            "Ours"
        ]
        whole = lines(both, board())
        assert [line["row"] for line in whole] == ["VSE++", "Ours"]
        assert (whole[0]["setting"], whole[0]["remark"]) == ("VGG; [1]", "n")

    def test_a_wide_table_has_its_sums_and_medians_but_no_further_recalls(self):
        metrics = [*RECALLS, "i2t_medr", "t2i_medr"]
        wide = paper_of(own([1.0] * 8), metrics=metrics)
        (table,) = shown_tables(wide, board())["7"]
        heads = ["i2t R@1", "t2i R@1", "i2t MedR", "t2i MedR", "rsum"]
        assert set(table.frame) == {"row", *heads}

    def test_rows_of_one_label_have_their_setting_and_comparability_where_it_differs(
        self,
    ):
        of_two = paper_of(
            own([1.0], setting="x"), own([2.0], setting="y"), metrics=["i2t_r1"]
        )
        (table,) = shown_tables(of_two, board())["7"]
        assert list(table.frame["row"]) == ["Ours, x", "Ours, y"]
        differ = paper_of(
            own([1.0]), own([2.0], preset="own2", label="Two"), metrics=["i2t_r1"]
        )
        made = [
            builders.standing(
                name, [builders.outcome(name, 0, ranks=HALF, scaled=scaled)]
            )
            for name, scaled in (("own", []), ("own2", ["epochs"]))
        ]
        facts = {"title": "F", "split": "karpathy", "reader": "flickr30k"}
        of_made = builders.board(*made, dataset="flickr30k", **facts)
        (two,) = shown_tables(differ, of_made)["7"]
        labels = ["Ours; comparable: yes", "Two; comparable: no, other budget"]
        assert list(two.frame["row"]) == labels
        assert (
            list(table.frame) == ["row", "i2t R@1"]
            and unmeasured(of_two, [board()]) == []
        )


def test_all_tables_of_the_papers_are_as_printed():
    counted = 0
    nothing = board(preset="of no paper")
    for path in FOLDER.glob("*.yaml"):
        paper = papers()[path.stem]
        for number, source in yaml.safe_load(path.read_text())["tables"].items():
            counted += 1
            for place in {place for row in source["rows"] for place in row["numbers"]}:
                expected = [row for row in source["rows"] if place in row["numbers"]]
                shown = paper_table(paper, number, place, nothing).frame.to_dict(
                    "records"
                )
                assert [line["row"] for line in shown] == [
                    row["label"] for row in expected
                ]
                for line, row in zip(shown, expected, strict=True):
                    numbers = dict(
                        zip(source["metrics"], row["numbers"][place], strict=True)
                    )
                    for metric, value in numbers.items():
                        cell = line[METRICS[metric].heading]
                        assert cell.printed.value == value
                        text = str(cell).partition("\xa0")[0]
                        assert text == NONE if value is None else float(text) == value
                    terms = [numbers.get(metric) for metric in RECALLS]
                    if set(RECALLS) <= set(numbers):
                        total = None if None in terms else pytest.approx(sum(terms))
                        assert line["rsum"].printed.value == total
    assert counted == 23
