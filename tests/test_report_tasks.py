"""The report of what is more than two directions of one split: phrases, persons, folds.

Made-up cells whose numbers are worked out by hand, on five datasets: `scenes` has
captions and phrases, `people` captions as queries only, `coco` folds and features
without images, `phrases` nothing but phrases and may not be published, `nothing`
phrases that no preset could localise.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import builders
import numpy as np
import pandas as pd
import pytest
import report_seasons
from builders import seal_tables
from oracles import whole_matrices
from PIL import Image, ImageColor
from report_readers import (
    assert_hostile_text_is_text,
    links,
    markdown_pages,
    shown_table,
    target_of,
)
from report_seasons import FOLDER, add_column, conclude_from_few, contents

from benchmark.boards import claims, flags
from benchmark.boards.boards import Board, Outcome, Row
from benchmark.commands.export import tables_of
from benchmark.commands.ledger import write_ledger
from benchmark.core.records import Costs
from benchmark.data.prepared_tables import read_card
from benchmark.data.results import RETRIEVED, SAMPLES, Ranks
from benchmark.papers.printed_tables import papers
from benchmark.report import __main__ as report
from benchmark.report import figure_listing
from benchmark.report.figure_listing import FigureInputs
from benchmark.report.pages import dataset_page, result_tables
from benchmark.report.pages.paper_tables import paper_table
from benchmark.report.tables import FORMATS, NONE
from benchmark.scoring.metrics import retrieval_metrics
from benchmark.season.parameters import DatasetSettings, Params
from benchmark.stats.significance import RankCorrelation
from seasons import params_of

IMAGES, CAPTIONS, PHRASES = 8, 16, 16
CORRELATION = {"value": -0.5, "low": -0.9, "high": -0.1}
OWNER = np.repeat(np.arange(IMAGES), 2)  # of captions, and of phrases
HOSTILE = f"{report_seasons.HOSTILE} $x$"
TRUE, WRONG = [10.0, 10.0, 60.0, 60.0], [100.0, 10.0, 140.0, 60.0]
FACTS = {
    "scenes": {
        "may_publish": True,
        "twins": {"images": 3, "captions": 2},
        "release": {"name": "small", "departs": "Small images."},
    },
    "people": {"may_publish": True, "ways": ["t2i"]},
    "coco": {"may_publish": True, "folds": 2, "reader": "mscoco", "split": "karpathy"},
    "phrases": {"may_publish": False},
    "nothing": {"may_publish": True},
}
BEST, CCA = "two_branch_phrase_augmented", "cca_phrases"

# Of 16 phrases: 12 right at once, 2 fourth, 2 never: 75, 87.5, 87.5. And 4 at once, 12
# never.
GOOD = np.repeat([0, 3, 10], [12, 2, 2])
POOR = np.repeat([0, 10], [4, 12])


def params() -> Params:
    return params_of(
        datasets={name: DatasetSettings(reader="folder") for name in FACTS}
    )


def prepare(dataset: str) -> dict:
    people = [f"g{n // 2}" for n in range(IMAGES)] if dataset == "people" else None
    counts = {"images": IMAGES, "captions": CAPTIONS, "phrases": PHRASES}
    facts = {"title": f"The {dataset}", "reader": "folder", "counts": {"test": counts}}
    texts = [f"{dataset} text {number} {HOSTILE}" for number in range(CAPTIONS)]
    given = {"owners": OWNER, "texts": texts, "groups": people, "phrases": OWNER}
    facts |= FACTS[dataset]
    folder = report_seasons.prepare(
        dataset, has_images=dataset != "coco", **given, **facts
    )
    phrases = [f"{dataset} phrase {number} {HOSTILE}" for number in range(PHRASES)]
    add_column(folder / "regions.parquet", "phrase", phrases)
    for corner, value in zip(("x0", "y0", "x1", "y1"), TRUE, strict=True):
        add_column(folder / "regions.parquet", corner, [value] * PHRASES)
    seal_tables(dataset)
    return read_card(dataset)


def cell(
    dataset: str,
    preset: str,
    seed: int = 0,
    /,
    seconds: dict | None = None,
    **facts: object,
) -> Outcome:
    given = {
        "images": IMAGES,
        "captions": CAPTIONS,
        "method": "cca" if preset == CCA else "two_branch_embedding",
        "image_features": {"encoder": "cnn"},
        "text_features": {"encoder": "words", "weights": "mine"},
    }
    history = pd.DataFrame(
        {"epoch": [1, 2], "loss": [2.0, 1.0], "val_rsum": [9.0, 8.0]}
    )
    history = history if preset != CCA else None
    made = builders.outcome(
        preset, seed, dataset=dataset, history=history, **(given | facts)
    )
    seconds = seconds or {"per_image": 1e-3, "per_caption": 2e-3, "per_pair": 1e-6}
    training = builders.cost(packages={"torch": "2"}, training=5.0)
    scoring = builders.cost(packages={"torch": "2"}, **seconds)
    kept = replace(made.kept, costs=Costs(training=training, scoring=scoring))
    return replace(made, kept=kept, trainings=(training,))


def retriever(
    dataset: str,
    preset: str,
    ranks: dict[str, np.ndarray],
    retrieved: dict[str, np.ndarray],
    **more: object,
) -> Outcome:
    whole = {
        way: Ranks.of_best(of) for way, of in ranks.items() if not way.endswith("_fold")
    }
    scores = np.linspace(0, 1, 50)
    metrics = retrieval_metrics(whole) | whole_matrices.score_metrics(
        scores, scores - 0.5
    )
    metrics |= {f"{way}_r1_tie_gap": 0.0 for way in whole}
    made = cell(dataset, preset, metrics=metrics | more)
    builders.keep_ranks(made, ranks, replicates=np.linspace(0.2, 0.4, 200))
    builders.keep_arrays(made, RETRIEVED, **retrieved)
    return made


def localiser(dataset: str, preset: str, ranks: np.ndarray, seed: int = 0) -> Outcome:
    recalls = {f"p2r_r{k}": 100 * float(np.mean(ranks < k)) for k in (1, 5, 10)}
    more = {"p2r_medr": 1, "p2r_meanr": 2.0, "p2r_bound": 87.5, "p2r_chance_r1": 12.5}
    metrics = recalls | more | {"rsum": sum(recalls.values())}
    facts = {"task": "localisation", "phrases": PHRASES, "metrics": metrics}
    played = cell(dataset, preset, seed, seconds={"per_pair": 2e-6}, **facts)
    builders.keep_ranks(played, {"p2r": ranks})
    boxes = np.where((ranks == 0)[:, None], TRUE, WRONG).astype(np.float32)
    builders.keep_arrays(played, SAMPLES, p2r_boxes=boxes)
    return played


def lost(dataset: str, preset: str) -> Outcome:
    facts = {"status": "failed", "reason": HOSTILE, "selected_epoch": None}
    failed = cell(dataset, preset, task="localisation", **facts)
    builders.keep_ranks(failed, {})
    return failed


def standing(outcomes: Sequence[Outcome], title: str) -> Row:
    return builders.standing(outcomes[0].record.preset, outcomes, title)


def both(rank: int) -> dict[str, np.ndarray]:
    return {"i2t": np.full(IMAGES, rank), "t2i": np.full(CAPTIONS, rank)}


# What is retrieved first: of images their first caption, of captions their own image.
FOUND = {"i2t": np.arange(IMAGES)[:, None] * 2, "t2i": OWNER[:, None]}


def make_boards() -> list[Board]:
    cards = {dataset: prepare(dataset) for dataset in FACTS}
    # every second caption at once: 50, 100, 100
    ranks = {"t2i": np.tile([0, 4], IMAGES)}
    others = OWNER ^ 1  # the other image of the person
    people = retriever(
        "people", "scan_t2i_avg", ranks, {"t2i": np.stack([others, OWNER], axis=1)}
    )
    folds = {"fold_i2t_medr": 1.0, "fold_t2i_medr": 1.5, "fold_rsum": 500.0}
    values = {"i2t_medr": [1, 1], "t2i_medr": [1, 2], "rsum": [520.0, 480.0]}
    for way in ("i2t", "t2i"):
        for k, each in ((1, [80.0, 60.0]), (5, [90.0, 80.0]), (10, [95.0, 95.0])):
            folds[f"fold_{way}_r{k}"] = sum(each) / 2
            values[f"{way}_r{k}"] = each
    within = {f"{way}_fold": of for way, of in both(0).items()}
    in_folds = retriever(
        "coco", "scan_t2i_avg", both(1) | within, FOUND, **folds, fold_values=values
    )
    scenes = [
        standing(
            [retriever("scenes", "two_branch_constraints", both(1), FOUND)], "Whole"
        ),
        standing([localiser("scenes", CCA, POOR)], "CCA"),
        standing(
            [localiser("scenes", BEST, GOOD, seed) for seed in (0, 1, 2)],
            f"Best {HOSTILE}",
        ),
        standing(
            [
                retriever(
                    *("scenes", "two_branch_weighted", both(0), FOUND),
                    **{"alpha": 0.3, "overlap_s": 0.125},
                )
            ],
            "Both",
        ),
        standing([lost("scenes", "two_branch_phrase_single")], "Lost"),
    ]
    rows = {
        "scenes": scenes,
        "people": [standing([people], "Searcher")],
        "coco": [standing([in_folds], "Folded")],
        "phrases": [standing([localiser("phrases", BEST, GOOD)], "Only")],
        "nothing": [standing([lost("nothing", BEST)], "Lost")],
    }
    told = {"trained_on": {"mine": ["people"]}}
    return [
        Board(dataset=name, card=cards[name], rows=of, **told)
        for name, of in rows.items()
    ]


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> tuple[Path, list[Board]]:
    """A folder with the report of the boards, without the figures of retrieval."""
    folder = tmp_path_factory.mktemp("tasks")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        conclude_from_few(patch)
        known = {"scenes": RankCorrelation(count=12, groups=4, **CORRELATION)}
        patch.setattr(
            dataset_page, "overlap_and_rsum", lambda board: known.get(board.dataset)
        )
        boards = make_boards()
        patch.setattr(report, "read_boards", lambda _: boards)
        figures = figure_listing.figures
        patch.setattr(
            figure_listing, "figures", lambda *of: figures(*of) if is_drawn(*of) else ()
        )
        report.write_report(params())
        write_ledger()
    return folder, boards


def is_drawn(section: str, inputs: FigureInputs) -> bool:
    return section == "phrases" or (
        section == "training" and inputs.board.localisation.ranked
    )


@pytest.fixture
def boards(written, monkeypatch) -> dict[str, Board]:
    """By dataset; in the folder of the report."""
    monkeypatch.chdir(written[0])
    conclude_from_few(monkeypatch)
    return {board.dataset: board for board in written[1]}


def page(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def section(text: str, head: str) -> str:
    level = head.partition(" ")[0]
    _, _, rest = f"\n{text}".partition(f"\n{head}\n")
    assert rest, head
    return re.split(rf"^#{{1,{len(level)}}} ", rest, maxsplit=1, flags=re.M)[0]


def rows(text: str, head: str = "preset") -> list[dict[str, str]]:
    return shown_table(text, head).records()


def test_phrases_have_a_leaderboard_of_their_own(boards):
    text = section(page("datasets/scenes.md"), "## Phrase localisation")
    on_first = section(page("README.md"), "## The scenes: localising phrases")
    for lines in (rows(text, "p2r R@1")[:2], rows(on_first, "p2r R@1")):
        best, cca = lines
        names = ("p2r R@1", "p2r R@5", "p2r R@10")
        # of all three seeds
        assert [best[name] for name in names] == ["75.0", "87.5", "87.5"]
        assert [cca[name] for name in names] == ["25.0", "25.0", "25.0"]
        low, high = map(float, re.findall(r"\d+\.\d", best["95% interval"]))
        assert low < 75 < high
    best, cca, failed = rows(text, "p2r R@1")
    assert (best["rank"], cca["rank"]) == ("1", "2")  # of cca there is one training
    assert (best["seeds"], cca["seeds"]) == ("3", "1")
    assert (failed["preset"], failed["p2r R@1"], failed["p2r R@5"]) == (
        "Lost",
        "failed",
        NONE,
    )
    every = result_tables.of_direction(boards["scenes"].localisation, "p2r")
    assert list(every.frame["upper bound"].map(str)) == ["87.5", "87.5"]
    assert list(every.frame["R@1 by chance"].map(str)) == ["12.5", "12.5"]


def test_sentences_and_phrases_are_never_in_one_table(boards):
    text = page("datasets/scenes.md")
    ranked = rows(section(text, "## Result"))
    assert [row["preset"] for row in ranked] == ["Both", "Whole"]
    assert [row["rsum"] for row in ranked] == ["600.0", "400.0"]
    assert "came as features" in page("datasets/coco.md")
    assert {row["preset"] for row in rows(section(text, "## Cost"))} == {
        "Both",
        "Whole",
    }
    plots = pd.read_csv(FOLDER / "plots/leaderboard.csv")
    assert list(plots[plots["dataset"] == "scenes"]["rsum"]) == [600.0, 400.0]
    assert "second score: 0.3" in text
    (failed,) = rows(text, "reason")
    assert failed["reason"] == " ".join(HOSTILE.split())


def test_twins_within_test_another_release_and_folds_are_told(boards):
    text = page("datasets/scenes.md")
    result = section(text, "## Result")
    assert "3 images and 2 captions of test" in result
    # rsum is 600
    assert "V" in rows(result)[0]["flags"] and "W" not in rows(result)[0]["flags"]
    assert "all rows: other release" in result
    assert "Small images" in section(text, "## What to know of each row")
    assert "nearly equal" not in page("datasets/people.md") and "folds" not in text
    # 80 and 60: 70 and a sample standard deviation of 20 / sqrt(2).
    (row,) = rows(section(page("datasets/coco.md"), "## 1K, mean of 2 folds"))
    assert row["i2t R@1"].replace("\xa0", " ") == "70.0 \N{PLUS-MINUS SIGN} 14.1"


def test_an_encoder_that_was_trained_on_the_captions_is_named_on_the_page(boards):
    head = "## What to know of each row"
    text = page("datasets/people.md")
    assert "1 of 1 rows read a text encoder" in section(text, "## Result")
    assert flags.captions_seen.name in section(text, head)
    other = page("datasets/scenes.md")
    assert "text encoder" not in section(other, "## Result")
    assert flags.captions_seen.name not in section(other, head)


def test_the_page_says_what_the_best_row_is_the_best_of(boards):
    result = section(page("datasets/scenes.md"), "## Result")
    assert '<a id="the-best-row"></a>' in result
    assert "best of 2," in result
    assert "of 2 rows" in result and "(9.0" in result
    assert "the-best-row" not in page("datasets/people.md")  # one row


def test_how_rsum_depends_on_s_is_told_where_it_is_known(boards):
    head = "## Similarity of matched and unmatched pairs"
    told = section(page("datasets/scenes.md"), head)
    told = " ".join(told.replace("\\", "").split())
    assert "Over 12 rows of 4 methods" in told
    assert "-0.50 [-0.90, -0.10]: the smaller S, the better" in told
    assert "rank correlation" not in page("datasets/people.md")


def test_tables_1_2_and_5_are_filled(boards):
    """Table 5 prints the image-sentence model of table 2 once more."""
    paper, found = papers()["two_branch"], {}
    for number, head in (("1", "p2r R@1"), ("2", "rsum"), ("5", "rsum")):
        place = paper.tables[number].places[0]
        cells = paper_table(paper, number, place, boards["scenes"]).frame[head]
        found[number] = {cell.value for cell in cells} - {None}
    assert found == {"1": {25.0, 75.0}, "2": {400.0}, "5": {400.0, 600.0}}


def test_images_of_phrases_stand_where_they_may_be_published_and_else_stay_here(boards):
    text = section(page("datasets/scenes.md"), "### Phrases and boxes")
    assert "figures/scenes-phrases." in text and "scenes phrase 1" in text
    (drawn,) = [line for line in text.splitlines() if "scenes-phrases" in line]
    numbers = re.findall(r"scenes phrase (\d+) ", drawn)
    assert numbers[6:] == ["12", "13", "14", "15"]  # missed: the last four of sixteen
    assert not list((FOLDER / "figures").glob("phrases-phrases*"))
    assert list((FOLDER / "local/phrases").glob("phrases-phrases.*"))
    assert "/local/phrases.md`" in page("datasets/phrases.md")
    for path, data in contents(FOLDER).items():
        assert "/local/" in path or b"phrases phrase" not in data, path


def test_images_of_a_person_are_relevant(boards):
    text = section(page("datasets/people.md"), "### Hits and misses")
    assert "Image to captions" not in text
    (file,) = re.findall(r"\((\S+-found\.png)\)", text)
    with Image.open(FOLDER / "datasets" / file) as sheet:
        pixels = np.asarray(sheet)
    assert len(pixels) == 6 * 128  # three hits and three misses
    for edge in pixels[::128, 18:]:
        assert len(edge) % 2 == 0 and len(edge) > 128  # two images
        assert (edge == ImageColor.getrgb("#009E73")).all()  # both have the green frame


def test_of_phrases_alone_or_of_nothing_no_table_of_retrieval_is_there(boards):
    text = page("datasets/phrases.md")
    for head in ("## Result", "## Cost", "## Over seeds", "### Hits and misses"):
        assert head not in text
    on_first = section(page("README.md"), "## The phrases: localising phrases")
    assert "localising phrases: **Only**" in on_first
    (row,) = rows(page("datasets/nothing.md"), "status")
    assert (row["preset"], row["status"]) == ("Lost", "failed")
    assert "No preset has" in page("README.md")


def test_claims_on_phrases_have_verdicts(boards):
    verdicts = {
        verdict.claim.id: verdict for verdict in claims.claim_tests(boards["scenes"])
    }
    failed = verdicts["localisation_nonlinear_helps"]
    assert failed.conclusion == "not run" and failed.reason.startswith("Lost: failed: ")
    assert verdicts["regions_barely_help"].verdicts[0].comparison.difference == 200.0


def test_all_tables_can_be_exported(boards):
    tables = tables_of(params(), list(boards.values()))
    assert {"scenes/localisation", "scenes/p2r", "scenes/cost", "coco/folds"} <= set(
        tables
    )
    assert (
        "scenes/localisation_cost" in tables and "coco/localisation_cost" not in tables
    )
    assert "phrases/leaderboard" not in tables
    for table in tables.values():
        for form in FORMATS.values():
            assert form(table)


def test_links_resolve_and_hostile_text_stays_text(boards):
    for path in markdown_pages():
        assert_hostile_text_is_text(path)
        for target in links(path):
            if target.startswith("#"):
                assert f'<a id="{target[1:]}"></a>' in path.read_text(
                    encoding="utf-8"
                ), target
            elif not target.startswith("https://") and "/results/" not in target:
                assert target_of(path, target).is_file(), (path, target)
