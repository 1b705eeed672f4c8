"""The report of what is more than two directions of one split: phrases, persons, folds.

Made-up cells whose numbers are worked out by hand, on five datasets: `scenes` has captions and
phrases, `people` captions as queries only, `coco` folds and features without pictures, `phrases`
nothing but phrases and may not be published, `nothing` phrases that no preset could localise.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import builders
import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt
from PIL import Image
from report_readers import HTML, target_of
from report_seasons import add_column, conclude_from_few

from benchmark import protocol
from benchmark.analysis import claims
from benchmark.analysis.boards import Board, Outcome, Standing
from benchmark.analysis.grounds import Cause
from benchmark.analysis.verdict_rules import Conclusion
from benchmark.commands import site_contents
from benchmark.commands.ledger import write_ledger
from benchmark.core.files import write_json
from benchmark.papers.printed_tables import papers
from benchmark.report import __main__ as report
from benchmark.report import figure_listing
from benchmark.report.figure_listing import FigureInputs
from benchmark.report.figures.phrase_boxes import compared
from benchmark.report.pages.dataset_page import FIGURES_OF_RETRIEVAL, dataset_tables
from benchmark.report.pages.replay_tables import replay_tables
from benchmark.report.pages.result_tables import LIMITS, headings, localised
from benchmark.season.parameters import DatasetSettings, Params
from seasons import params_of

IMAGES, CAPTIONS, PHRASES = 8, 16, 16
OWNER = np.repeat(np.arange(IMAGES), 2)  # of captions, and of phrases
HOSTILE = "a | b <script>alert(1)</script> ](http://evil.example) `typed` **fat**\n\n# top $x$"
TRUE, WRONG = [10.0, 10.0, 60.0, 60.0], [100.0, 10.0, 140.0, 60.0]
FOLDER = Path("reports/try")
ROOT = Path(__file__).parent.parent
FACTS = {
    "scenes": {"may_publish": True},
    "people": {"may_publish": True, "ways": ["t2i"]},
    "coco": {"may_publish": True, "folds": 2, "reader": "mscoco", "split": "karpathy"},
    "phrases": {"may_publish": False},
    "nothing": {"may_publish": True},
}
PLUS_MINUS = "\N{PLUS-MINUS SIGN}\N{NO-BREAK SPACE}"
BEST, CCA = "two_branch_phrase_augmented", "cca_phrases"

# Of 16 phrases: 12 right at once, 2 fourth, 2 never: 75, 87.5, 87.5. And 4 at once, 12 never.
GOOD = np.repeat([0, 3, 10], [12, 2, 2])
POOR = np.repeat([0, 10], [4, 12])


def params() -> Params:
    return params_of(datasets={name: DatasetSettings(reader="folder") for name in FACTS})


def prepare(dataset: str) -> dict:
    """The prepared tables and, but for features, pictures; returns the card."""
    groups = [f"g{n // 2}" for n in range(IMAGES)] if dataset == "people" else None
    card = {
        "title": f"The {dataset}",
        "source": "s",
        "licence": "none",
        "reader": "folder",
        "split": "made",
        "manifest": "m",
        "notes": [],
        "leakage": {"notes": []},
        "counts": {"test": {"images": IMAGES, "captions": CAPTIONS, "phrases": PHRASES}},
        **FACTS[dataset],
    }
    folder = builders.prepare(dataset, OWNER, groups=groups, phrases=OWNER, card=card)
    files = [f"{number}.png" if dataset != "coco" else "" for number in range(IMAGES)]
    texts = [f"{dataset} text {number} {HOSTILE}" for number in range(CAPTIONS)]
    phrases = [f"{dataset} phrase {number} {HOSTILE}" for number in range(PHRASES)]
    add_column(folder / "images.parquet", "file", files)
    add_column(folder / "captions.parquet", "text", texts)
    add_column(folder / "regions.parquet", "phrase", phrases)
    for corner, value in zip(("x0", "y0", "x1", "y1"), TRUE, strict=True):
        add_column(folder / "regions.parquet", corner, [value] * PHRASES)
    raw = Path("data/raw") / dataset
    raw.mkdir(parents=True)
    write_json(raw / "captions.json", [])
    for number, file in enumerate(filter(None, files)):
        Image.new("RGB", (200, 100), (20 * number, 90, 90)).save(raw / file)
    return card


def cell(
    dataset: str, preset: str, seed: int = 0, /, seconds: dict | None = None, **facts: object
) -> Outcome:
    given = {
        "images": IMAGES,
        "captions": CAPTIONS,
        "method": "cca" if preset == CCA else "two_branch_embedding",
        "image_features": {"encoder": "cnn"},
        "text_features": {"encoder": "words"},
    }
    history = pd.DataFrame({"epoch": [1, 2], "loss": [2.0, 1.0], "val_rsum": [9.0, 8.0]})
    played = builders.outcome(
        preset,
        seed,
        dataset=dataset,
        training=[5.0],
        history=history if preset != CCA else None,
        **(given | facts),
    )
    costs = [builders.cost(packages={"torch": "2"}, training=5.0)]
    scoring = seconds or {"per_image": 1e-3, "per_caption": 2e-3, "per_pair": 1e-6}
    return replace(
        played,
        trainings=tuple(costs),
        scoring=builders.cost(packages={"torch": "2"}, **scoring),
    )


def retriever(
    dataset: str,
    preset: str,
    ranks: dict[str, np.ndarray],
    retrieved: dict[str, np.ndarray],
    **more: object,
) -> Outcome:
    whole = {way: of for way, of in ranks.items() if not way.endswith("_fold")}
    scores = np.linspace(0, 1, 50)
    metrics = protocol.retrieval_metrics(whole) | protocol.score_metrics(scores, scores - 0.5)
    metrics |= {f"{way}_r1_tie_gap": 0.0 for way in whole}
    metrics |= {"overlap_s_low": 0.1, "overlap_s_high": 0.9}
    played = cell(dataset, preset, metrics=metrics | more)
    builders.write_ranks(played.folder, ranks)
    samples = {"matched_sample": scores, "unmatched_sample": scores - 0.5}
    builders.write_arrays(played.folder, "similarities", **samples)
    builders.write_arrays(played.folder, "retrieved", **retrieved)
    replicates = np.linspace(0.2, 0.4, 200)
    builders.write_arrays(played.folder, "samples", overlap_replicates=replicates)
    return played


def localiser(dataset: str, preset: str, ranks: np.ndarray, seed: int = 0) -> Outcome:
    recalls = {f"p2r_r{k}": 100 * float(np.mean(ranks < k)) for k in (1, 5, 10)}
    more = {"p2r_medr": 1, "p2r_meanr": 2.0, "p2r_bound": 87.5, "p2r_chance_r1": 12.5}
    played = cell(
        dataset,
        preset,
        seed,
        task="localisation",
        phrases=PHRASES,
        metrics=recalls | more | {"rsum": sum(recalls.values())},
        seconds={"per_pair": 2e-6},
    )
    builders.write_ranks(played.folder, {"p2r": ranks})
    boxes = np.where((ranks == 0)[:, None], TRUE, WRONG).astype(np.float32)
    builders.write_arrays(played.folder, "samples", p2r_boxes=boxes)
    for name in ("similarities", "retrieved"):
        builders.write_arrays(played.folder, name)
    return played


def lost(dataset: str, preset: str) -> Outcome:
    facts = {"status": "failed", "reason": HOSTILE, "selected_epoch": None}
    failed = cell(dataset, preset, task="localisation", **facts)
    builders.write_ranks(failed.folder, {})
    return failed


def standing(outcomes: Sequence[Outcome], title: str) -> Standing:
    return builders.standing(outcomes[0].record.preset, outcomes, title)


def both(rank: int) -> dict[str, np.ndarray]:
    return {"i2t": np.full(IMAGES, rank), "t2i": np.full(CAPTIONS, rank)}


# What is retrieved first: of images their first caption, of captions their own image.
FOUND = {"i2t": np.arange(IMAGES)[:, None] * 2, "t2i": OWNER[:, None]}


def make_boards() -> list[Board]:
    """In a folder of their own."""
    cards = {dataset: prepare(dataset) for dataset in FACTS}
    ranks = {"t2i": np.tile([0, 4], IMAGES)}  # every second caption at once: 50, 100, 100
    others = OWNER ^ 1  # the other image of the person
    people = retriever("people", "scan_t2i_avg", ranks, {"t2i": np.stack([others, OWNER], axis=1)})
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
        standing([retriever("scenes", "two_branch_constraints", both(1), FOUND)], "Whole"),
        standing([localiser("scenes", CCA, POOR)], "CCA"),
        standing([localiser("scenes", BEST, GOOD, seed) for seed in (0, 1, 2)], f"Best {HOSTILE}"),
        standing([retriever("scenes", "two_branch_weighted", both(0), FOUND, alpha=0.3)], "Both"),
        standing([lost("scenes", "two_branch_phrase_single")], "Lost"),
    ]
    return [
        Board(dataset="scenes", card=cards["scenes"], standings=scenes),
        Board(dataset="people", card=cards["people"], standings=[standing([people], "Searcher")]),
        Board(dataset="coco", card=cards["coco"], standings=[standing([in_folds], "Folded")]),
        Board(
            dataset="phrases",
            card=cards["phrases"],
            standings=[standing([localiser("phrases", BEST, GOOD)], "Only")],
        ),
        Board(
            dataset="nothing",
            card=cards["nothing"],
            standings=[standing([lost("nothing", BEST)], "Lost")],
        ),
    ]


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> tuple[Path, list[Board]]:
    """A folder with the report of the boards, without the figures of retrieval."""
    folder = tmp_path_factory.mktemp("tasks")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        conclude_from_few(patch)
        boards = make_boards()
        patch.setattr(report, "read_boards", lambda _: boards)
        pictures = figure_listing.pictures
        patch.setattr(
            figure_listing,
            "pictures",
            lambda section, inputs: pictures(section, inputs) if is_drawn(section, inputs) else (),
        )
        report.write_report(params())
        write_ledger()
        first = contents()
        report.write_report(params())
        assert contents() == first  # the same bytes twice
    return folder, boards


def is_drawn(section: str, inputs: FigureInputs) -> bool:
    return section == "phrases" or (section == "training" and inputs.board.localisation.ranked)


def contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in FOLDER.rglob("*") if path.is_file()}


@pytest.fixture
def boards(written, monkeypatch) -> dict[str, Board]:
    """By dataset; in the folder of the report."""
    monkeypatch.chdir(written[0])
    conclude_from_few(monkeypatch)
    return {board.dataset: board for board in written[1]}


def page(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def section(text: str, head: str) -> str:
    """What stands under a heading, up to the next one of its level."""
    level = head.partition(" ")[0]
    _, _, rest = f"\n{text}".partition(f"\n{head}\n")
    assert rest, head
    return re.split(rf"^#{{1,{len(level)}}} ", rest, maxsplit=1, flags=re.M)[0]


def rows(text: str) -> list[dict[str, str]]:
    """Of the first table, as a reader sees it."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    table: list[list[str]] = []
    for opening, token in zip(tokens, tokens[1:], strict=False):
        if opening.type == "table_close":
            break
        if opening.type == "tr_open":
            table.append([])
        if opening.type in ("th_open", "td_open"):
            table[-1].append("".join(child.content for child in token.children))
    heads, *others = table
    return [dict(zip(heads, row, strict=True)) for row in others]


@pytest.mark.slow
def test_phrases_have_a_leaderboard_of_their_own(boards):
    on_first_page = section(page("README.md"), "## The scenes")
    for text in (
        section(page("datasets/scenes.md"), "## Phrase localisation"),
        on_first_page[on_first_page.rindex("| preset") :],
    ):
        best, cca, failed = rows(text[text.index("| preset") :])
        names = ("p2r R@1", "p2r R@5", "p2r R@10")
        assert [best[name] for name in names] == ["75.0", "87.5", "87.5"]  # of all three seeds
        assert [cca[name] for name in names] == ["25.0", "25.0", "25.0"]
        assert "Of a right box: upper bound 87.5, R\\@1 by chance 12.5." in text
        assert (best["group"], cca["group"]) == ("-", "-")  # of cca there is one training
        assert (best["seeds"], cca["seeds"]) == ("3", "1")
        assert (failed["preset"], failed["p2r R@1"], failed["p2r R@5"]) == ("Lost", "failed", "-")
        low, high = map(float, re.findall(r"\d+\.\d", best["95% interval"]))
        assert low < 75 < high


def test_sentences_and_phrases_are_never_in_one_table(boards):
    text = page("datasets/scenes.md")
    ranked = rows(section(text, "## Result"))
    assert [row["preset"] for row in ranked] == ["Both", "Whole"]
    assert [row["rsum"] for row in ranked] == ["600.0", "400.0"]
    assert {row["preset"] for row in rows(section(text, "## Cost"))} == {"Both", "Whole"}
    plots = pd.read_csv(FOLDER / "plots/leaderboard.csv")
    assert plots[plots["dataset"] == "scenes"]["preset"].tolist() == [
        "two_branch_weighted",
        "two_branch_constraints",
    ]
    drawn = pd.read_csv(FOLDER / "plots/localisation.csv")
    assert drawn[["dataset", "preset", "p2r_r1"]].values.tolist() == [
        ["scenes", BEST, 75.0],
        ["scenes", CCA, 25.0],
        ["phrases", BEST, 75.0],
    ]


def test_no_column_of_localised_phrases_stands_there_twice(boards):
    heads = localised(boards["scenes"].localisation).heads
    assert len(heads) == len(set(heads))
    assert heads[-2:] == headings(LIMITS)


def test_the_site_orders_localised_phrases_as_the_pages_do(boards):
    told = {each["task"]: each for each in site_contents._tasks(boards["scenes"])}
    assert (told["retrieval"]["ranked_by"], told["localisation"]["ranked_by"]) == ("rsum", "p2r_r1")
    best = told["localisation"]["standings"][0]
    assert (best["preset"], best["metrics"]["p2r_r1"]) == (BEST, 75.0)
    differences = [pair["difference"] for pair in told["localisation"]["pairs"].values()]
    assert differences == [pytest.approx(50.0)]


def test_a_failure_stands_with_its_task_and_reason(boards):
    text = page("datasets/scenes.md")
    told = section(text, "## Phrase localisation").partition("Without a result:")[2]
    assert rows(told)[0]["reason"] == " ".join(HOSTILE.split())
    assert "Without a result" not in section(text, "## Result")


def test_tables_1_2_and_5_are_filled(boards):
    """Table 5 prints the image-sentence model of table 2 once more: it stands there alone."""
    by_number = {
        re.search(r"Table (\d)", part).group(1): rows(part)
        for part in re.split(r"^## (?=Table )", page("papers/two_branch.md"), flags=re.M)[1:]
        if "The scenes" in part.splitlines()[0]
    }
    here = {
        number: [row[head].split()[-2 if "[" not in row[head] else 2] for row in of_table]
        for number, head, of_table in (
            ("1", "p2r R@1", by_number["1"]),
            ("2", "rsum", by_number["2"]),
            ("5", "rsum", by_number["5"]),
        )
    }
    assert here == {"1": ["25.0", "75.0"], "2": ["400.0"], "5": ["600.0"]}


def test_the_weight_of_the_second_score_is_told(boards):
    assert "weight of the second score: 0.3" in page("datasets/scenes.md")


class TestPhrasePictures:
    def test_they_stand_where_they_may_be_published(self, boards):
        text = section(page("datasets/scenes.md"), "### Phrases and boxes")
        for name in ("phrases", "phrases-missed"):
            assert f"(../figures/scenes-{name}.png)" in text
            assert (FOLDER / f"figures/scenes-{name}.png").is_file()
        assert "evenly spaced" in text and "scenes phrase 1" in text

    def test_else_they_stay_on_the_machine(self, boards):
        assert not list((FOLDER / "figures").glob("phrases-phrases*"))
        assert (FOLDER / "local/phrases/phrases-phrases.png").is_file()
        assert "(phrases/phrases-phrases.png)" in page("local/phrases.md")
        assert "(../local/phrases.md)" in page("datasets/phrases.md")
        for path, data in contents().items():
            assert "/local/" in path or b"phrases phrase" not in data, path

    def test_misses_are_those_of_the_best_preset(self, boards):
        """Four of sixteen: the last four."""
        text = section(page("datasets/scenes.md"), "### Phrases and boxes")
        (missed,) = [line for line in text.splitlines() if "phrases-missed.png" in line]
        numbers = re.findall(r"scenes phrase (\d+) ", missed)
        assert numbers == ["12", "13", "14", "15"]

    def test_the_baseline_is_cca_else_the_worst(self, boards):
        localisation = boards["scenes"].localisation
        assert [s.preset for s in compared(localisation)] == [BEST, CCA]
        assert [s.preset for s in compared(boards["phrases"].localisation)] == [BEST]
        names = ("a", "b", "c")
        others = [standing(localisation.ranked[0].outcomes[:1], name) for name in names]
        board = Board(dataset="scenes", card={}, standings=others)
        assert [s.row.title for s in compared(board)] == ["a", "c"]


class TestPersons:
    def test_there_is_one_direction(self, boards):
        (row,) = rows(section(page("datasets/people.md"), "## Result"))
        assert not [head for head in row if head.startswith("i2t")]
        assert [row[head] for head in ("t2i R@1", "rsum")] == ["50.0", "250.0"]
        assert "sum of their three R@K" in page("datasets/people.md")

    def test_pictures_of_the_person_are_relevant(self, boards):
        text = section(page("datasets/people.md"), "### Hits and misses")
        assert "Picture to captions" not in text
        assert "Pictures of its person have a green frame" in text
        shown = [re.findall(r"/(\d+)(-relevant)?\.png", line) for line in text.splitlines()]
        cells = [pair for line in shown for pair in line]
        assert len(cells) == 12  # two each of three hits and three misses
        assert all(framed for _, framed in cells)

    def test_figures_are_of_one_direction(self, boards):
        inputs = FigureInputs(board=boards["people"].retrieval)
        pictures = [p for s in FIGURES_OF_RETRIEVAL for p in figure_listing.pictures(s, inputs)]
        names = [picture.name for picture in pictures]
        assert names == ["overlaps", "similarities", "training", "cost"]
        for name in papers():
            assert all(p.figure for p in figure_listing.pictures(f"papers/{name}", inputs))


class TestFolds:
    def test_means_stand_with_the_spread_of_the_folds(self, boards):
        """80 and 60: 70 and a sample standard deviation of 20 / sqrt(2)."""
        (row,) = rows(section(page("datasets/coco.md"), "## 1K, mean of 2 folds"))
        assert row["i2t R@1"] == f"70.0 {PLUS_MINUS}14.1"
        assert row["t2i R@10"] == f"95.0 {PLUS_MINUS}0.0"
        assert row["t2i MedR"] == f"1.5 {PLUS_MINUS}0.7"
        assert row["rsum"] == f"500.0 {PLUS_MINUS}28.3"
        of_one = "95% of rsum over test images, these trainings only"
        assert row["95% of rsum"] == "-" and row[of_one].startswith("[")
        (whole,) = rows(section(page("datasets/coco.md"), "## Result"))
        assert whole["rsum"] == "400.0"

    def test_other_datasets_have_none(self, boards):
        assert "folds" not in page("datasets/scenes.md")
        assert dataset_tables(boards["scenes"])["folds"] is None

    def test_replayed_rows_have_both(self, boards):
        """The mean over folds of 1,000 images, and the whole split."""
        tables = replay_tables(papers()["scan"], boards["coco"])
        table = tables["2 mscoco_1k/test"]
        (entry,) = [row[table.heads.index("rsum")] for row in table.rows]
        assert "\N{RIGHTWARDS ARROW} 500.0" in entry
        whole = tables["1 flickr30k/test"]
        (entry,) = [row[whole.heads.index("rsum")] for row in whole.rows]
        assert "\N{RIGHTWARDS ARROW} 400.0" in entry

    def test_without_pictures_that_is_said(self, boards):
        text = page("datasets/coco.md")
        assert "There are no pictures to look at: the dataset came as features." in text


class TestOnlyPhrases:
    def test_nothing_of_retrieval_is_there(self, boards):
        text = page("datasets/phrases.md")
        for head in ("## Result", "## Cost", "## Over seeds", "### Hits and misses"):
            assert head not in text
        assert "## Phrase localisation" in text and "phrase vectors" in text
        verdict = section(page("README.md"), "## The phrases")
        assert "Best at localising phrases: **Only**" in verdict
        assert "rsum" not in verdict

    def test_where_all_failed_that_is_said(self, boards):
        text = page("datasets/nothing.md")
        (row,) = rows(section(text, "## Phrase localisation"))
        assert (row["preset"], row["status"]) == ("Lost", "failed")
        assert "No preset has a result." in page("README.md")

    def test_metrics_are_those_of_every_task(self, boards):
        metrics = json.loads(page("metrics.json"))
        assert set(metrics["scenes"]) == {
            *("two_branch_weighted", "two_branch_constraints", BEST, CCA, "claims")
        }
        assert metrics["scenes"][BEST]["p2r_r1"] == 75.0
        assert set(metrics["nothing"]) == {"claims"}


def test_claims_on_phrases_have_verdicts(boards):
    verdicts = {verdict.claim.id: verdict for verdict in claims.verdicts(boards["scenes"])}
    failed = verdicts["localisation_nonlinear_helps"]
    assert (failed.conclusion, failed.cause) == (Conclusion.NOT_RUN, Cause.NO_RESULT)
    assert failed.reason.startswith("Lost: failed: ")
    weighted = verdicts["regions_barely_help"]
    assert weighted.tested[0].comparison.difference == 200.0


def test_all_tables_can_be_exported(boards):
    tables = report.tables_of(list(boards.values()))
    assert {"scenes/localisation", "scenes/localisation-cost", "coco/folds"} <= set(tables)
    assert "phrases/leaderboard" not in tables
    for table in tables.values():
        for form in report.FORMATS.values():
            assert form(table)


def test_links_and_figures_resolve_and_hostile_text_stays_text(boards):
    pages = sorted(FOLDER.rglob("*.md"))
    used = set()
    for path in pages:
        tokens = MarkdownIt("commonmark").enable("table").parse(path.read_text())
        inline = [child for token in tokens for child in token.children or ()]
        html = {t.content.strip() for t in [*tokens, *inline] if t.type.startswith("html")}
        assert not [text for text in html if not HTML.fullmatch(text)]
        every = [*inline, *(inner for child in inline for inner in child.children or ())]
        targets = [t.attrs[name] for t in every for name in ("href", "src") if name in t.attrs]
        assert not [target for target in targets if "evil" in target]
        targets = [t.partition("#")[0] for t in targets if not t.startswith("https://")]
        for target in targets:
            if "/results/" not in target:  # which these boards were not read from
                assert target_of(path, target).is_file(), (path, target)
            used.add((path.parent / target).resolve())
    figures = {path.resolve() for path in FOLDER.rglob("*.[ps][nv]g")}
    assert figures <= used
