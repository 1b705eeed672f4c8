"""Season files: which there are, and how mistakes in them are reported."""

from dataclasses import asdict
from pathlib import Path

import pytest

from benchmark.analysis.tuning_trials import is_taken, read_trials
from benchmark.core.errors import UserError
from benchmark.papers.equal_settings import unequal_pairs, unequal_settings
from benchmark.papers.printed_tables import papers
from benchmark.season.method_options import method_of
from benchmark.season.presets import PACKAGE_ROOT
from benchmark.season.resolving import resolve
from benchmark.season.season_files import read_season, season_name, season_names, season_path

START = "title: T\npresets: []\n"


def test_the_ready_made_seasons_are_listed():
    assert {"demo", "flickr8k", "localisation", "papers"} <= set(season_names())
    assert season_names() == sorted(season_names())
    assert "shared" not in season_names()


def test_a_season_of_the_working_folder_goes_over_a_ready_made_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert season_path("demo") == PACKAGE_ROOT / "seasons/demo/season.yaml"
    own = Path("seasons/demo/season.yaml")
    own.parent.mkdir(parents=True)
    own.write_text(f"{START}datasets: {{}}\nseeds: [7]\n")
    assert season_path("demo") == own
    assert read_season("demo").seeds == [7]
    assert season_path("mine/small.yaml") == Path("mine/small.yaml")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("demo", "demo"),
        ("mine/small.yaml", "small"),
        ("seasons/demo/season.yaml", "demo"),
    ],
)
def test_a_season_has_the_name_of_its_file_or_folder(name, expected):
    assert season_name(name) == expected


def test_all_may_be_asked_for_in_a_file(tmp_path):
    path = tmp_path / "whole.yaml"
    path.write_text("title: T\ndatasets: {shapes: {}}\npresets: all\nseeds: [0]\n")
    assert resolve("whole", read_season(str(path))).cells
    path.write_text("title: T\ndatasets: {shapes: {}}\npresets: some\nseeds: [0]\n")
    with pytest.raises(UserError) as error:
        read_season(str(path))
    assert error.value.where.startswith(f"{path}: presets") and error.value.found == "'some'"


@pytest.mark.parametrize(
    ("text", "where", "expected", "found"),
    [
        ("title: [", "", "YAML", "something else (while parsing"),
        ("- a\n- b\n", "", "a mapping", "list"),
        ("", "", "a mapping", "NoneType"),
        (f"{START}datasets: {{}}\n", ": seeds", "", ""),
        (f"{START}datasets: {{}}\nseeds: [0]\nepochs: 3\n", ": epochs", "seeds_of", "an unknown"),
        (
            f"{START}datasets: {{a: {{image: {{gird: 2}}}}}}\nseeds: [0]\n",
            ": datasets.a.image.gird",
            "",
            "",
        ),
        (
            f"{START}datasets: {{a: {{image: {{grid: 0}}}}}}\nseeds: [0]\n",
            ": datasets.a.image.grid",
            "greater than or equal to 1",
            "0",
        ),
        (
            f"{START}datasets: {{a: {{reader: ../x}}}}\nseeds: [0]\n",
            ": datasets.a.reader",
            "pattern",
            "'../x'",
        ),
        (f"{START}datasets: {{}}\nseeds: [one]\n", ": seeds.0", "integer", "'one'"),
        ("title: !!python/object/apply:os.system ['true']\n", "", "YAML", "something else"),
    ],
)
def test_a_bad_season_file_is_refused_with_the_place(tmp_path, text, where, expected, found):
    path = tmp_path / "try.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        read_season(str(path))
    assert error.value.where == f"{path}{where}"
    assert expected in error.value.expected and error.value.found.startswith(found)
    assert error.value.do and "\n" not in str(error.value)


def test_no_code_of_a_season_file_is_run(tmp_path):
    path = tmp_path / "try.yaml"
    path.write_text("title: !!python/object/apply:os.system ['true']\n")
    with pytest.raises(UserError, match="YAML.*python/object/apply"):
        read_season(str(path))


def test_an_unknown_season_lists_the_known_ones():
    with pytest.raises(UserError) as error:
        read_season("flicker")
    assert error.value.where == "season 'flicker'" and "flickr8k" in error.value.expected
    assert "list seasons" in error.value.do


def test_a_season_file_that_is_not_there():
    with pytest.raises(UserError) as error:
        read_season("flicker.yaml")
    assert (error.value.where, error.value.found) == ("flicker.yaml", "file not found")


def test_the_localisation_season_has_every_row_of_its_tables():
    tables = papers()["two_branch"].tables
    rows = {row.preset for number in "15" for row in tables[number].rows if row.preset}
    assert len(rows) >= 13 and rows <= set(read_season("localisation").presets)


@pytest.mark.parametrize("name", season_names())
def test_a_committed_season_scales_alike_what_a_paper_compares(name, monkeypatch):
    """Or has a committed trial of just these options, by validation, for what it scales otherwise;
    the verdicts on such pairs say "unequal settings"."""
    monkeypatch.chdir(PACKAGE_ROOT)
    trials = read_trials(name)
    for first, second, names in unequal_pairs(resolve(name, read_season(name))):
        tried = [
            {word.partition("=")[0] for word in trial.options.split()}
            for cell in (first, second)
            for trial in trials[trials.preset == cell.preset].itertuples()
            if is_taken(trial.options, cell)
        ]
        assert any(set(names) <= options for options in tried), (first.preset, second.preset, names)


EARLIER = {"flickr8k"}  # played before this was a rule; scaled when played again


@pytest.mark.parametrize("name", sorted({*season_names()} - EARLIER))
def test_a_committed_season_keeps_the_share_of_a_batch_that_are_hardest_negatives(name):
    """The hardest 50 of 500 are the hardest 13 of 128, and not fewer than one."""
    cells = resolve(name, read_season(name)).cells.values()
    for cell in (cell for cell in cells if not cell.method.endswith(".py")):  # of a paper
        default = asdict(method_of(cell.method).Config())
        if "top_k" in default and {"batch_size", "top_k"} & {*cell.scaled}:
            expected = default["top_k"] * cell.options["batch_size"] / default["batch_size"]
            assert abs(cell.options["top_k"] - expected) <= 0.5, cell.key


def test_presets_that_a_paper_compares_and_a_season_does_not_scale_alike_are_named():
    season = read_season("demo")
    assert {"latentmatch", "dualmatch", "cyclematch"} <= set(season.presets)
    wider = season.options | {"latentmatch": {"hidden_size": 99, "epochs": 7}}
    lines = unequal_settings(resolve("demo", season.model_copy(update={"options": wider})))
    start = "shapes: dualmatch and latentmatch are compared by a paper, "
    assert f"{start}and the season scales them differently: epochs, hidden_size" in lines
    assert len(lines) == 2  # cyclematch and latentmatch, too


def test_what_the_rows_of_a_paper_are_about_is_not_scaled_alike():
    """Both text CNNs shrink, the deeper one to a layout of its own; their widths must be equal."""
    deep, shallow = "dual_path_res152_1", "dual_path_res152_res50_1"
    season = read_season("demo").model_copy(update={"presets": [deep, shallow]})
    layouts = {deep: {"blocks": "1,2,9,1"}, shallow: {"blocks": "1,1,1,1"}}
    named = {"dual_path": {"hidden_size": 9}} | layouts
    assert unequal_settings(resolve("demo", season.model_copy(update={"options": named}))) == []
    named[deep] = named[deep] | {"hidden_size": 8}
    (line,) = unequal_settings(resolve("demo", season.model_copy(update={"options": named})))
    assert line.endswith("differently: hidden_size")
