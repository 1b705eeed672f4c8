"""`export`: tables in every format, ranks of every query, TREC, Every Eval Ever, and
results for the Hugging Face Hub."""

import json
import re
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
import pytest
from pydantic import BaseModel, ConfigDict, Field, create_model
from refusals import check, refusal, refused
from report_seasons import (
    CAPTIONS,
    DATASETS,
    FUSION,
    IMAGES,
    PRESETS,
    cells,
    enter_played_season,
    record_of,
)

from benchmark.__main__ import main
from benchmark.boards.season_boards import read_boards
from benchmark.commands import export, judge
from benchmark.commands.export import tables_of
from benchmark.core.files import read_json, write_json
from benchmark.papers.printed_tables import papers
from benchmark.report.pages.result_tables import interval_of
from benchmark.season.parameters import Params


@pytest.fixture
def played(tmp_path_factory, tmp_path, monkeypatch) -> Params:
    return enter_played_season(tmp_path_factory, tmp_path / "work", monkeypatch)


def exported(capsys, *words: str) -> str:
    assert main(["export", "--season", "try", *words]) == 0
    return capsys.readouterr().out


def test_the_list_names_every_table_and_each_can_be_had(played, capsys):
    names = exported(capsys).splitlines()
    assert len(names) == len(set(names))
    numbers = {
        name.partition(" ")[0] for name in names if not name.startswith(DATASETS)
    }
    assert len(numbers) == 23
    assert {"two_branch/2", "scan/5", "cyclematch/6.2", "instance_loss/8"} <= numbers
    known = ("leaderboard", "i2t", "overlap", "claims")
    assert {f"{dataset}/{name}" for dataset in DATASETS for name in known} <= {*names}
    for form in ("csv", "json"):
        text = exported(capsys, "open/leaderboard", "--format", form)
        assert text.count("\n") > len(PRESETS)
        if form == "json":
            table = json.loads(text)
            rows = {
                row[0]: dict(zip(table["heads"], row, strict=True))
                for row in table["rows"]
            }
            rsums = [record_of(FUSION, seed)["metrics"]["rsum"] for seed in (0, 1)]
            assert set(rows) == set(PRESETS) and rows[FUSION]["seeds"] == 2
            assert rows[FUSION]["rsum"] == pytest.approx(sum(rsums) / 2)
    # A number stands for the tables of all places.
    text = exported(capsys, "two_branch/4", "--format", "latex")
    assert text.count(r"\begin{tabular}") == 2 * len(DATASETS)
    assert not Path("reports/try").exists()  # instead of a report


def test_every_rank_is_exported_with_its_ids(played, capsys):
    error = refusal(export, "--season", "try", "--queries", "all.csv")
    check(error, where="--queries", found="all.csv", do="--queries all.parquet")
    exported(capsys, "--queries", "all.parquet")
    table = pd.read_parquet("all.parquet")
    heads = "season dataset preset seed layer direction query cluster rank"
    assert list(table) == heads.split()
    assert len(table) == len(cells(played)) * (IMAGES + CAPTIONS)
    mine = table[
        (table.preset == FUSION) & (table.dataset == "open") & (table.seed == 1)
    ]
    metrics = record_of(FUSION, 1)["metrics"]
    for way in ("i2t", "t2i"):
        ranks = mine.loc[mine.direction == way, "rank"]
        assert 100 * (ranks < 1).mean() == pytest.approx(metrics[f"{way}_r1"])
    assert set(mine.loc[mine.direction == "i2t", "query"]) == {
        f"i{n}" for n in range(IMAGES)
    }
    captions = pd.read_parquet("data/prepared/open/captions.parquet").set_index(
        "caption_id"
    )
    owners = captions["image_id"].loc[mine.loc[mine.direction == "t2i", "query"]]
    assert list(mine.loc[mine.direction == "t2i", "cluster"]) == list(owners)
    of_images = mine[mine.direction == "i2t"]
    assert list(of_images["cluster"]) == list(of_images["query"])


def test_exported_presets_are_judged_as_their_season_judges_them(played, capsys):
    exported(capsys, "--queries", "all.parquet")
    table = pd.read_parquet("all.parquet")
    table[table["dataset"] == "open"].to_parquet("open.parquet", index=False)
    found = []
    for start, more in (("open.parquet", ()), ("try", ("--dataset", "open"))):
        names = [f"{start}:scan_t2i_avg", f"{start}:two_branch_bidirectional"]
        main(["judge", *names, "--out", f"{start}.json", *more])
        (verdict,) = read_json(Path(f"{start}.json"))
        keys = ("difference", "low", "high", "seeds", "margin")
        found.append([verdict[key] for key in keys])
    assert found[0] == found[1] and None not in found[0]
    capsys.readouterr()
    twice = "open.parquet,open.parquet:scan_t2i_avg"
    assert main(["judge", twice, "open.parquet:nobody"]) == 2
    assert "Traceback" not in capsys.readouterr().err
    error = refusal(judge, "open.parquet:nobody", "open.parquet:scan_t2i_avg")
    check(error, expected="nobody", found="none")


def test_rankings_of_every_cell_are_written(played, capsys):
    assert exported(capsys, "--trec", "rankings") == "rankings\n"
    names = {f"{cell.dataset}-{cell.preset}-{cell.seed}" for cell in cells(played)}
    runs = {f"{name}.{way}.run" for name in names for way in ("i2t", "t2i")}
    qrels = {f"{dataset}.{way}.qrels" for dataset in DATASETS for way in ("i2t", "t2i")}
    assert {path.name for path in Path("rankings").iterdir()} == runs | qrels


def test_results_of_other_raw_files_are_refused(played):
    card = Path("data/cards/open/card.json")
    write_json(card, read_json(card) | {"manifest": "other"})
    error = refusal(export, "--season", "try")
    check(error, expected="data/prepared/open", do="rematch play try")


# Every Eval Ever, schema 0.3.0: what it requires of an aggregate record, and its types

TEXTS, TEXT = (dict[str, str] | None, None), (str | None, None)  # that may be left out
BOUND = float | Literal["Infinity", "-Infinity"]
FINITE = Annotated[float, Field(allow_inf_nan=False)]
KNOWN = (
    "self_deployed",
    "externally_managed",
    "open_weights",
    "closed_weights",
    "unknown",
)


def strict_part(**fields: object) -> type[BaseModel]:
    typed = {
        name: of if isinstance(of, tuple) else (of, ...) for name, of in fields.items()
    }
    return create_model(
        "Part", __config__=ConfigDict(strict=True, extra="forbid"), **typed
    )


SOURCE = strict_part(
    source_type=Literal["documentation", "evaluation_run"],
    source_organization_name=str,
    evaluator_relationship=Literal[
        "first_party", "third_party", "collaborative", "other"
    ],
    source_name=TEXT,
    additional_details=TEXTS,
)
LIBRARY = strict_part(name=str, version=str, additional_details=TEXTS)
MODEL = strict_part(
    name=str,
    id=Annotated[str, Field(pattern=r"^[^/]+/[^/]+$")],
    developer=TEXT,
    inference_engine=(LIBRARY | None, None),
    additional_details=dict[str, str],
)
METRIC = strict_part(
    lower_is_better=bool,
    score_type=Literal["continuous"],
    min_score=BOUND,
    max_score=BOUND,
    **dict.fromkeys(
        ("evaluation_description", "metric_id", "metric_name", "metric_unit"), TEXT
    ),
)
SHARE = Annotated[float, Field(ge=0, le=1)]
INTERVAL = strict_part(lower=FINITE, upper=FINITE, confidence_level=SHARE, method=TEXT)
UNCERTAINTY = strict_part(confidence_interval=INTERVAL, num_samples=int)
RESULT = strict_part(
    evaluation_name=str,
    source_data=strict_part(
        dataset_name=str, source_type=Literal["other"], additional_details=TEXTS
    ),
    metric_config=METRIC,
    score_details=strict_part(
        score=FINITE, details=TEXTS, uncertainty=(UNCERTAINTY | None, None)
    ),
    evaluation_result_id=TEXT,
)
LOG = strict_part(
    schema_version=Literal["0.3.0"],
    evaluation_id=str,
    retrieved_timestamp=Annotated[str, Field(pattern=r"^\d{10}(\.\d+)?$")],
    source_metadata=SOURCE,
    eval_library=LIBRARY,
    model_info=MODEL,
    evaluation_results=Annotated[list[RESULT], Field(min_length=1)],
)


def assert_in_order(log: BaseModel) -> None:
    """Of every log: known words on the model, and bounds around scores and their
    intervals."""
    told = log.model_info.additional_details
    assert {told["deployment_type"], told["model_availability"]} <= {*KNOWN}
    for result in log.evaluation_results:
        config, score = result.metric_config, result.score_details
        low, high = float(config.min_score), float(config.max_score)
        assert low <= score.score <= high
        if score.uncertainty:
            ends = score.uncertainty.confidence_interval
            assert low <= ends.lower <= score.score <= ends.upper <= high


UUID4 = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def logs_without_time(folder: str, capsys) -> dict[Path, dict]:
    assert (
        exported(capsys, "--format", "eee", "--out", folder) == f"{folder}: 8 files\n"
    )
    paths = sorted(Path(folder).rglob("*.json"))
    known = {path.relative_to(folder): read_json(path) for path in paths}
    return {path: log | {"retrieved_timestamp": ""} for path, log in known.items()}


def test_logs_fit_the_schema_and_have_the_numbers_of_the_records(played, capsys):
    first = logs_without_time("eee", capsys)
    assert first == logs_without_time("two", capsys) == logs_without_time("eee", capsys)
    assert len(first) == len(PRESETS) * len(DATASETS) == 8
    (board,) = [board for board in read_boards(played) if board.dataset == "open"]
    seen = set()
    for file in sorted(Path("eee").rglob("*.json")):
        log = LOG.model_validate_json(file.read_text())
        assert_in_order(log)
        assert re.fullmatch(
            rf"eee/data/rematch-try/{log.model_info.id}/{UUID4}.json", str(file)
        )
        of = {result.evaluation_result_id: result for result in log.evaluation_results}
        assert len(of) == len(log.evaluation_results)
        for name, result in of.items():
            dataset, _, metric = name.partition(".")
            if dataset != "open" or log.model_info.id != f"rematch/{FUSION}":
                continue
            values = [record_of(FUSION, seed)["metrics"][metric] for seed in (0, 1)]
            score = result.score_details
            assert score.score == pytest.approx(sum(values) / 2)
            assert [float(score.details[f"seed_{n}"]) for n in (0, 1)] == values
            if metric == "rsum":
                ends = score.uncertainty.confidence_interval
                known = interval_of(board, board.row(FUSION), "rsum")
                assert (ends.lower, ends.upper) == (known.low, known.high)
            seen.add(metric)
    assert {"i2t_r1", "t2i_r10", "rsum", "overlap_s", "t2i_medr"} <= seen
    for words in (
        (),
        ("--out", "x", "open/leaderboard"),
        ("--out", "x", "--trec", "trec"),
    ):
        error = refusal(export, "--season", "try", "--format", "eee", *words)
        check(error, where="export", expected="--out FOLDER", do="--out FOLDER")
    assert not Path("x").exists()


def test_samples_are_judged_as_their_season_judges_them(played, capsys):
    exported(capsys, "--format", "eee", "--samples", "--out", "eee")
    assert len([*Path("eee").rglob("*_samples.jsonl")]) == len(PRESETS) * len(DATASETS)
    names = []
    for preset in (FUSION, "two_branch_bidirectional"):
        for path in Path("eee/data/rematch-try/rematch", preset).glob(
            "*_samples.jsonl"
        ):
            if "open.i2t_r1" in path.read_text():
                names.append(f"{path}:open.i2t_r1")
    main(["judge", *names, "--out", "samples.json"])
    presets = [f"try:{FUSION}", "try:two_branch_bidirectional", "--dataset", "open"]
    main(["judge", *presets, "--metric", "i2t_r1", "--out", "season.json"])
    (samples,) = read_json(Path("samples.json"))
    (season,) = read_json(Path("season.json"))
    for key in ("difference", "seeds"):
        assert samples[key] == pytest.approx(season[key])
    error = refusal(export, "--season", "try", "--samples")
    check(error, where="--samples", expected="--format eee", found="--format csv")


def test_every_preset_has_a_file_of_evaluation_results(played, capsys):
    folder = "results-of-hub"
    words = ("--format", "eval_results", "--out", folder)
    assert exported(capsys, *words) == f"{folder}: {len(PRESETS)} files\n"
    names = {path.name for path in Path(folder).iterdir()}
    assert names == {f"{preset}.yaml" for preset in PRESETS}
    error = refusal(export, "--season", "try", "--format", "eval_results")
    check(error, where="export", expected="--out FOLDER", do="eval_results")


def test_datasets_of_one_title_are_told_apart_by_their_names(played):
    def titles(**facts: str) -> list[str]:
        """Of both boards, with these facts on both cards."""
        for dataset in DATASETS:
            path = Path("data/cards", dataset, "card.json")
            write_json(path, read_json(path) | facts)
        return [board.title for board in read_boards(played)]

    assert titles() == ["Dataset gated", "Dataset open"]
    assert titles(title="Same") == ["Same (gated)", "Same (open)"]
    assert titles(reader="folder") == ["gated", "open"]  # images of one's own


def test_a_season_in_the_place_of_a_dataset_is_told_with_its_option():
    with refused("table", do="--season demo"):
        export.chosen_tables({"shapes/leaderboard": dict}, "demo/leaderboard", "try")


@pytest.mark.parametrize("name", ["demo/leaderbord", "shapes/leaderbord"])
def test_no_table_that_is_not_there_is_advised(name):
    with refused("table", do="--season try, "):
        export.chosen_tables({"shapes/leaderboard": dict}, name, "try")


def test_a_season_alone_is_told_how_to_list_its_tables():
    with refused("table", do="--season demo, which prints"):
        export.chosen_tables({"shapes/leaderboard": dict}, "demo", "try")


@pytest.mark.parametrize("option", ["--queries", "--trec"])
def test_a_format_beside_ranks_is_refused(option):
    error = refusal(export, "--format", "latex", option, "all.parquet")
    check(error, where="--format", found=option)


def test_a_table_goes_to_a_file_through_the_shell(capsys):
    words = ("shapes/leaderboard", "--format", "latex", "--out", "table.tex")
    error = refusal(export, *words)
    check(error, where="--out", do="> table.tex")


@pytest.fixture
def season(tmp_path_factory, tmp_path, monkeypatch):
    return enter_played_season(tmp_path_factory, tmp_path / "work", monkeypatch)


def test_tables_of_papers_name_the_dataset_where_a_season_has_several(season):
    boards = read_boards(season)
    both = tables_of(season, boards)
    alone = tables_of(season, boards[:1])
    place = papers()["scan"].tables["1"].places[0]
    name = f"scan/1 {place}"
    assert {f"{name} {dataset}" for dataset in DATASETS} <= both.keys()
    assert name in alone and name not in both
    assert {f"{dataset}/leaderboard" for dataset in DATASETS} <= both.keys()


def test_a_table_without_rows_has_no_name_but_that_of_claims_has(season):
    tables = tables_of(season, read_boards(season))
    assert "open/localisation" not in tables
    assert "open/claims" in tables
