"""The papers' tables against made-up records whose numbers are worked out by hand."""

import re

import builders
import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt

from benchmark.analysis.boards import Board
from benchmark.papers import printed_tables
from benchmark.papers.printed_tables import About, Paper, Row, papers
from benchmark.report.pages.paper_tables import obstacles, paper_tables
from benchmark.report.table_formats import Table, as_markdown

IMAGES, EACH = 40, 2
OWNER = np.repeat(np.arange(IMAGES), EACH)
RECALLS = [f"{way}_r{k}" for way in ("i2t", "t2i") for k in (1, 5, 10)]
HEADS = ["i2t R@1", "i2t R@5", "i2t R@10", "t2i R@1", "t2i R@5", "t2i R@10"]
FLICKR, COCO = "flickr30k/test", "mscoco_1k/test"
PLUS_MINUS = "\N{PLUS-MINUS SIGN}\N{NO-BREAK SPACE}"

# Every second image is found at once and the others fourth: R@1 50, R@5 and R@10 100. Of an
# image's captions the first finds it at once and the second eighth: 50, 50, 100. In every resample
# of the images as well, for t2i and for what is 100; half of 40 images give 50 -+ 15.
HALF = {"i2t": np.tile([0, 3], IMAGES // 2), "t2i": np.tile([0, 7], IMAGES)}
ALL = {"i2t": np.zeros(IMAGES, int), "t2i": np.zeros(IMAGES * EACH, int)}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    """Prepared datasets of the same size."""
    monkeypatch.chdir(tmp_path)
    for dataset in ("flickr30k", "mine"):
        builders.prepare(dataset, OWNER)


def board(
    dataset: str = "flickr30k", preset: str = "own", seeds: tuple = (HALF,), **changes: object
) -> Board:
    """One preset, played with these ranks, on a dataset that is read by the module of its name."""
    outcomes = []
    for seed, ranks in enumerate(seeds):
        facts = {"dataset": dataset, "status": "ok" if ranks else "failed"} | changes
        made = builders.outcome(preset, seed, ranks=ranks, seconds={"per_pair": 2e-6}, **facts)
        outcomes.append(made)
    card = {"title": f"The {dataset}", "split": "karpathy", "reader": dataset}
    return builders.board(builders.standing(preset, outcomes), dataset=dataset, **card)


def printed_table(*rows: Row, metrics: list[str] | None = None) -> printed_tables.Table:
    return printed_tables.Table(title="Results", metrics=metrics or RECALLS, rows=list(rows))


def own(numbers: list, place: str = FLICKR, **facts: object) -> Row:
    return Row(**({"label": "Ours", "preset": "own"} | facts), numbers={place: numbers})


def tables(printed: printed_tables.Table, *boards: Board) -> dict[str, Table]:
    """By place."""
    return paper_tables(paper_of(printed), boards)["7"]


def paper_of(printed: printed_tables.Table) -> Paper:
    splits = {"flickr30k": "karpathy"}
    about = About(title="t", authors="a", year=2018, venue="v", source="s", splits=splits)
    return Paper(paper=about, tables={"7": printed}, claims=[])


def rows(printed: printed_tables.Table, *boards: Board) -> list[dict[str, str]]:
    """Of the only place, by column."""
    (table,) = tables(printed, *boards).values()
    texts = [[entry.text for entry in row] for row in table.entries]
    return [dict(zip(table.heads, row, strict=True)) for row in texts]


def numbers(row: dict[str, str], heads: list[str] = HEADS) -> list[str]:
    return [row[head] for head in heads]


def ends(entry: str) -> tuple[float, float]:
    low, high = re.fullmatch(r"\[(.+),\N{NO-BREAK SPACE}(.+)\]", entry).groups()
    return float(low), float(high)


THESE = "95% over test images, these trainings only"
PRINTED = [60.0, 100.0, 99.9, 50.0, 49.0, None]


class TestComparable:
    """The dataset and partition that the paper measured, its features and its budget."""

    def test_the_gap_is_ours_less_the_paper_s_with_its_sign(self):
        *_, gap = rows(printed_table(own(PRINTED)), board())
        assert gap["numbers of"] == "gap"
        assert numbers(gap) == ["-10.0", "+0.0", "+0.1", "+0.0", "+1.0", "-"]

    def test_the_interval_of_one_seed_is_over_the_images_and_called_so(self):
        """Wilson's of 40 images: 50 -+ 15, and 100 - 8.8 where all of them hit; of t2i each image
        hits with one of two captions, which is no reason to be surer."""
        _, _, interval, _ = rows(printed_table(own(PRINTED)), board())
        assert interval["numbers of"] == THESE
        assert ends(interval["i2t R@1"]) == pytest.approx((34.5, 65.5), abs=3)  # 1.96 x 7.9
        points = [ends(entry) for entry in numbers(interval, HEADS[1:])]
        assert points == [(91.2, 100), (91.2, 100), (35.2, 64.8), (35.2, 64.8), (91.2, 100)]
        assert ends(interval["rsum"]) == pytest.approx((434.5, 465.5), abs=3)

    def test_the_verdict_counts_printed_numbers_where_another_training_would_lie(self):
        """Of 50, 100, 50 another training lies anywhere; of 100, 100, 100 nothing is known."""
        *_, gap = rows(printed_table(own(PRINTED)), board(seeds=(HALF, ALL, HALF)))
        assert "; 3 of 3 reported numbers lie where another training would" in gap["remark"]
        assert gap["i2t R@10"] == "+0.1"

    def test_a_single_training_gives_no_verdict(self):
        *_, gap = rows(printed_table(own(PRINTED)), board(seeds=(HALF,)))
        said = "reproduced minus reported; how far trainings lie apart is not known"
        assert gap["remark"] == said

    def test_what_was_measured_stands_under_what_is_printed(self):
        printed, here, *_ = rows(printed_table(own(PRINTED)), board())
        assert numbers(printed) == ["60.0", "100.0", "99.9", "50.0", "49.0", "-"]
        assert (printed["row"], printed["numbers of"], printed["rsum"]) == ("Ours", "paper", "-")
        assert numbers(here) == ["50.0", "100.0", "100.0", "50.0", "50.0", "100.0"]
        assert (here["row"], here["numbers of"]) == ("", "here: The flickr30k")
        assert here["rsum"] == "450.0"
        assert here["remark"] == "1 seed; comparable"

    def test_over_seeds_it_is_their_mean(self):
        """R@1 of 50 and of 100: mean 75, sample standard deviation 50 / sqrt(2)."""
        _, here, _, gap = rows(printed_table(own(PRINTED)), board(seeds=(HALF, ALL)))
        assert here["i2t R@1"] == f"75.0 {PLUS_MINUS}35.4"
        assert here["remark"].startswith("2 seeds; ")
        assert gap["i2t R@1"] == "+15.0"

    def test_the_interval_of_two_seeds_is_over_both(self):
        """Of 50 and of 100: so far apart that nothing is known, but that R@1 is at most 100."""
        _, _, interval, _ = rows(printed_table(own(PRINTED)), board(seeds=(HALF, ALL)))
        assert interval["numbers of"] == "95% interval"
        assert ends(interval["i2t R@1"]) == (0, 100)
        assert ends(interval["i2t R@5"]) == (91.2, 100)

    def test_median_ranks_have_no_interval(self):
        printed = printed_table(own([2.0, 60.0]), metrics=["i2t_medr", "i2t_r1"])
        _, here, interval, gap = rows(printed, board())
        assert (here["i2t MedR"], interval["i2t MedR"]) == ("2", "-")  # floor(1.5) + 1
        assert gap["i2t MedR"] == "+0.0"
        assert "rsum" not in here


CASES = [
    (COCO, {}, "not comparable: other dataset"),
    ("flickr30k/val", {}, "not comparable: other split"),
    (FLICKR, {"scaled": ["epochs"]}, "not comparable: other budget"),
    (FLICKR, {"deviations": ["cnn"]}, "not comparable: other features"),
    (COCO, {"deviations": ["cnn"]}, "not comparable: other dataset, other features"),
    (
        FLICKR,
        {"text_features": {"weights": "random weights"}},
        "not comparable: random text encoder",
    ),
    (
        FLICKR,
        {"trainings": {"a": {"features": {"data/features/x/phrases_hglmm": "0"}}}},
        "not comparable: extra input",
    ),
    (
        COCO,
        {"deviations": ["cnn"], "scaled": ["epochs"]},
        "not comparable: other dataset, other features, other budget",
    ),
]


@pytest.mark.parametrize(("place", "changes", "reason"), CASES)
def test_what_cannot_be_compared_says_why_and_has_no_gap(place, changes, reason):
    played = board(**changes)
    printed = printed_table(own(PRINTED, place))
    reasons = obstacles(paper_of(printed), played, played.standings[0], place)
    assert f"not comparable: {', '.join(reasons)}" == reason
    shown = rows(printed, played)
    assert [row["numbers of"] for row in shown] == ["paper", "here: The flickr30k", THESE]
    assert shown[1]["remark"] == f"1 seed; {reason}"


def test_another_partition_of_the_same_dataset_is_not_compared():
    played = board()
    played.card["split"] = "entities"
    _, here, *others = rows(printed_table(own(PRINTED)), played)
    assert here["remark"] == "1 seed; not comparable: other split"
    assert [row["numbers of"] for row in others] == [THESE]


class TestPlaces:
    """A season names its datasets as it likes: what they are, the reader and the partition say."""

    def reasons(self, place: str, **card: object) -> str:
        played = board("mine")
        played.card.update(card)
        about = About(
            title="t",
            authors="a",
            year=2018,
            venue="v",
            source="s",
            splits={"flickr30k": "karpathy", "mscoco_1k": "karpathy", "mscoco_5k": "karpathy"},
        )
        paper = Paper(paper=about, tables={"7": printed_table(own(PRINTED, place))}, claims=[])
        return ", ".join(obstacles(paper, played, played.standings[0], place))

    def test_the_reader_and_the_partition_decide(self):
        assert self.reasons(FLICKR, reader="flickr30k") == ""

    def test_the_phrases_dataset_has_the_same_pictures_and_captions(self):
        assert self.reasons(FLICKR, reader="flickr30k_entities") == ""

    def test_mscoco_is_one_dataset_judged_in_two_ways(self):
        assert self.reasons(COCO, reader="mscoco") == ""
        assert self.reasons("mscoco_5k/test", reader="mscoco") == ""

    def test_another_reader_is_another_dataset(self):
        assert self.reasons(COCO, reader="flickr30k") == "other dataset"
        assert self.reasons(FLICKR, reader="mine") == "other dataset"

    def test_another_partition_is_another_split(self):
        reasons = self.reasons(COCO, reader="mscoco", split="karpathy_without_restval")
        assert reasons == "other split"


class TestFolds:
    """Two folds of 20 images; of 5K the table has the whole split, of 1K the means of the folds."""

    # Rank within the fold of every image 0 but for ten of the second: R@1 of the folds 100 and 50,
    # R@5 and R@10 100; every caption has 0. Of the whole split no rank is below 1.
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
        played = board("mine", seeds=(whole,))
        played.card.update(reader="mscoco", folds=2)
        (outcome,) = played.standings[0].outcomes
        outcome.record.metrics.update(self.METRICS)
        path = outcome.folder / "scores/ranks.parquet"
        frames = [pd.read_parquet(path)]
        for way, ranks in self.FOLD.items():
            queries = frames[0].loc[frames[0]["direction"] == way.removesuffix("_fold"), "query"]
            frames.append(pd.DataFrame({"direction": way, "query": queries, "rank": ranks}))
        pd.concat(frames).to_parquet(path)
        return played

    def test_1k_is_the_mean_of_the_folds(self):
        _, here, interval = rows(printed_table(own(PRINTED, COCO)), self.board())
        assert numbers(here) == ["75.0", "100.0", "100.0", "100.0", "100.0", "100.0"]
        assert here["rsum"] == "575.0"
        # Wilson's of 30 of 40 images, and of a sum with the same variance
        assert ends(interval["i2t R@1"]) == pytest.approx((59.6, 85.9), abs=1)
        assert ends(interval["t2i R@1"]) == (91.2, 100)
        assert ends(interval["rsum"]) == pytest.approx((557.8, 585.4), abs=1.5)

    def test_5k_is_the_whole_split(self):
        _, here, _ = rows(printed_table(own(PRINTED, "mscoco_5k/test")), self.board())
        assert numbers(here) == ["0.0", "100.0", "100.0"] * 2
        assert here["rsum"] == "400.0"

    def test_of_other_datasets_too(self):
        _, here, _ = rows(printed_table(own(PRINTED)), self.board())
        assert numbers(here, ["i2t R@1", "rsum"]) == ["0.0", "400.0"]


def test_a_sum_of_one_direction_never_stands_under_one_of_both():
    t2i = {"t2i": ALL["t2i"]}
    played = board("mine", seeds=(t2i,))
    played.card["ways"] = ["t2i"]
    assert played.standings[0].mean("rsum") == 300.0
    _, here, interval = rows(printed_table(own(PRINTED)), played)
    assert numbers(here) == ["-", "-", "-", "100.0", "100.0", "100.0"]
    assert here["rsum"] == interval["rsum"] == "-"


class TestReasons:
    """Why there is nothing under a row of the paper's own."""

    def test_a_preset_that_is_not_of_the_season(self):
        _, here = rows(printed_table(own(PRINTED)), board(preset="other"))
        assert (here["numbers of"], here["remark"]) == (
            "here: The flickr30k",
            "not played in this season",
        )
        assert set(numbers(here)) == {"-"} == {here["rsum"]}

    @pytest.mark.parametrize(
        ("status", "reason", "remark"),
        [
            ("failed", "the loss is NaN", "failed: the loss is NaN"),
            ("not_applicable", "needs 5 captions", "not applicable: needs 5 captions"),
        ],
    )
    def test_a_preset_without_a_result(self, status, reason, remark):
        played = board(seeds=({}, {}), status=status, reason=reason)
        _, here = rows(printed_table(own(PRINTED)), played)
        assert here["remark"] == remark
        assert set(numbers(here)) == {"-"}

    def test_of_a_preset_that_failed_with_one_seed_the_others_count(self):
        _, here, *_ = rows(printed_table(own(PRINTED)), board(seeds=({}, HALF)))
        assert here["remark"].startswith("1 seed; ")
        assert here["i2t R@1"] == "50.0"

    def test_a_row_that_no_preset_plays(self):
        unplayed = Row(label="Ours", unplayed="not yet", numbers={FLICKR: PRINTED})
        _, here = rows(printed_table(unplayed), board(), board("mine"))
        assert (here["numbers of"], here["remark"]) == ("here", "not yet")
        assert set(numbers(here)) == {"-"}

    def test_a_metric_that_was_not_measured_is_a_dash(self):
        printed = printed_table(own([60.0, 50.0, 7.0]), metrics=["i2t_r1", "s2s_r1", "per_pair"])
        _, here, interval, _ = rows(printed, board(deviations=[]))
        assert here["s2s R@1"] == interval["s2s R@1"] == "-"
        assert here["score a pair (\N{MICRO SIGN}s)"] == "2.00"

    def test_there_is_one_for_every_dataset_and_first_for_that_of_the_paper(self):
        shown = rows(printed_table(own(PRINTED)), board("mine"), board())
        assert [row["numbers of"] for row in shown] == [
            "paper",
            "here: The flickr30k",
            THESE,
            "gap",
            "here: The mine",
            THESE,
        ]


def test_a_row_of_others_stands_alone_as_printed():
    other = Row(label="VSE++", setting="VGG; [1]", note="n", numbers={FLICKR: [1.5, *[None] * 5]})
    (row,) = rows(printed_table(other), board())
    assert [row[head] for head in ("row", "setting", "numbers of", "remark")] == [
        "VSE++",
        "VGG; [1]",
        "paper",
        "n",
    ]
    assert numbers(row) == ["1.5", *["-"] * 5]


def test_rsum_is_added_where_all_its_terms_are_printed():
    full = Row(label="a", numbers={FLICKR: [10.1, 20.2, 30.3, 1.1, 2.2, 3.3]})
    (row,) = rows(printed_table(full))
    assert row["rsum"] == "67.2"
    (row,) = rows(printed_table(Row(label="a", numbers={FLICKR: [1.0]}), metrics=["i2t_r1"]))
    assert "rsum" not in row


def test_places_that_are_printed_side_by_side_are_tables_of_their_own():
    both = Row(label="a", numbers={COCO: [1.0], FLICKR: [2.0]})
    single = Row(label="b", numbers={FLICKR: [3.0]})
    by_place = tables(printed_table(both, single, metrics=["i2t_r1"]))
    assert list(by_place) == [COCO, FLICKR]
    assert [[row[0], row[3]] for row in by_place[COCO].rows] == [["a", "1.0"]]
    assert [[row[0], row[3]] for row in by_place[FLICKR].rows] == [["a", "2.0"], ["b", "3.0"]]
    for place, table in by_place.items():
        assert "7" in table.title and place in table.title


def test_without_a_board_all_tables_of_the_papers_have_their_rows():
    for paper in papers().values():
        for number, by_place in paper_tables(paper, []).items():
            source = paper.tables[number]
            for place, table in by_place.items():
                printed = [row for row in table.rows if row[2] == "paper"]
                assert len(printed) == sum(place in row.numbers for row in source.rows)


@pytest.mark.parametrize("text", ["- item", "1. item", "+ a", "a | b", "<b>", "**x**", "# head"])
def test_remarks_below_a_table_are_text(text):
    """In Markdown they are a list, where a line may begin anything."""
    noted = Row(label="a", note=text, numbers={FLICKR: [2.0]})
    lost = board(seeds=({},), reason=text)
    (table,) = tables(printed_table(noted, own([1.0]), metrics=["i2t_r1"]), lost).values()
    tokens = MarkdownIt("commonmark").enable("table").parse(as_markdown(table))
    inline = [token for token in tokens if token.type == "inline"]
    shown = ["".join(child.content for child in token.children) for token in inline]
    assert text in shown and f"failed: {text}" in shown
    types = {child.type for token in inline for child in token.children}
    assert types == {"text"}
    lists = [token.type for token in tokens if token.type.endswith("list_open")]
    assert lists == ["ordered_list_open"]
