"""Claims that an author writes beside their results."""

import runpy
import shutil
from pathlib import Path

import pandas as pd
import pytest
from refusals import refused

import rematch
from benchmark.__main__ import main
from benchmark.commands.judge import judge_claims
from benchmark.commands.written_claims import read_claims
from benchmark.core.errors import UserError

EXAMPLE = Path(__file__).parents[1] / "examples/claims"
QUERIES = 400


@pytest.fixture
def three_methods(tmp_path) -> Path:
    levels = {"better": (300, 302), "worse": (240, 243), "equal": (301, 301)}
    for name, hits in levels.items():
        for seed, count in enumerate(hits):
            values = [int(query < count) for query in range(QUERIES)]
            table = pd.DataFrame({"query": range(QUERIES), "value": values})
            table.to_csv(tmp_path / f"{name}_{seed}.csv", index=False)
    return tmp_path


def written(folder: Path, *claims: str, **others: str) -> Path:
    lines = ["results:"]
    for name in ("better", "worse", "equal"):
        lines.append(f"  {name}: [{name}_0.csv, {name}_1.csv]")
    lines += [f"  {name}: {result}" for name, result in others.items()]
    lines += ["claims:", *(f"  - {{{claim}}}" for claim in claims)]
    path = folder / "claims.yaml"
    path.write_text("\n".join(lines))
    return path


def conclusions(path: Path) -> list[str]:
    return [facts["conclusion"] for facts in judge_claims(read_claims(path))]


def test_each_form_of_a_claim_is_judged(three_methods):
    path = written(
        three_methods,
        "better: better, than: worse",
        "better: worse, than: better",
        "not_better: worse, than: better",
        "alike: [better, equal], margin: 5",
        'result: worse, printed: "75.0"',
    )
    assert conclusions(path) == [
        "holds",
        "reversed",
        "holds",
        "holds",
        "below",
    ]


def test_claims_that_compare_results_are_adjusted_together(three_methods):
    claims = ["better: better, than: worse", "better: better, than: equal"]
    alone = judge_claims(read_claims(written(three_methods, claims[0])))[0]
    both = judge_claims(read_claims(written(three_methods, *claims)))
    assert alone["adjusted_p"] == alone["p"]
    assert both[0]["pairs"] == 2
    assert both[0]["adjusted_p"] == pytest.approx(2 * both[0]["p"], rel=1e-4)


def test_a_claim_keeps_its_place_and_its_statement(three_methods):
    path = written(
        three_methods,
        'result: better, printed: "75.0", statement: first',
        "better: better, than: worse, statement: second",
    )
    printed, compared = rematch.judge_claims(path)
    assert (printed.statement, compared.statement) == ("first", "second")
    assert isinstance(printed, rematch.PrintedVerdict)
    assert compared.holds
    assert compared.summary().startswith("second\n")


def test_a_result_is_read_as_the_file_says(three_methods):
    ranks = pd.DataFrame({"query": range(QUERIES), "rank": 1})
    ranks.to_csv(three_methods / "ranks.csv", index=False)
    path = written(
        three_methods,
        'result: first, printed: "100.0", metric: r1',
        first="{files: [ranks.csv], first_rank: 1}",
    )
    (facts,) = judge_claims(read_claims(path))
    assert facts["level"] == 100


@pytest.mark.parametrize(
    "claim, found",
    [
        ("better: better, than: wrose", "wrose"),
        ("better: better, than: better", "better twice"),
        ("better: better", "than"),
        ("alike: [better, worse], than: equal", "than"),
        ("better: better, than: worse, alike: [better, worse]", "better"),
        ("result: better, printed: 75.0", "75.0"),
        ("better: better, than: worse, margin: -1", "-1"),
        ("better: better, than: worse, margin: true", "True"),
        ("beter: better, than: worse", "beter"),
    ],
)
def test_what_is_no_claim_is_refused_in_one_line(three_methods, claim, found):
    with refused("claims.yaml") as error:
        read_claims(written(three_methods, claim))
    line = str(error.value)
    assert found in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("claim", "place"),
    [
        ("better: better, than: bettr", "claims.yaml: result 'bettr'"),
        ("better: better, than: worse, metric: r1", "claims.yaml: claims[0]: metric"),
    ],
)
def test_mistakes_are_corrected_in_the_file(three_methods, claim, place):
    with pytest.raises(UserError) as refusal:
        conclusions(written(three_methods, claim))
    assert refusal.value.where.endswith(place)
    assert "rematch season" not in refusal.value.do
    assert not refusal.value.do.startswith("--")


def test_a_missing_file_is_named(three_methods):
    path = written(three_methods, "better: gone, than: worse", gone="gone.csv")
    with refused("gone.csv"):
        read_claims(path)


def test_a_folder_and_a_file_may_have_commas_in_their_names(three_methods):
    folder = three_methods / "my,folder"
    folder.mkdir()
    for table in three_methods.glob("*.csv"):
        shutil.copy(table, folder)
    shutil.copy(three_methods / "worse_0.csv", folder / "worse,0.csv")
    one = "'worse,0.csv'"
    path = written(folder, "better: better, than: one", one=one)
    assert conclusions(path) == ["holds"]


def test_files_of_several_seeds_are_a_list(three_methods):
    several = "better_0.csv,better_1.csv"
    path = written(three_methods, "better: both, than: worse", both=f"'{several}'")
    with refused("results.both", found=several, do="a list"):
        read_claims(path)


def test_a_preset_is_one_of_each_file(three_methods):
    for seed in (0, 1):
        tables = []
        for name in ("better", "worse"):
            table = pd.read_csv(three_methods / f"{name}_{seed}.csv")
            tables.append(table.assign(preset=name))
        pd.concat(tables).to_csv(three_methods / f"all_{seed}.csv", index=False)
    path = written(
        three_methods,
        "better: a, than: b",
        a="['all_0.csv:better', 'all_1.csv:better']",
        b="['all_0.csv:worse', 'all_1.csv:worse']",
    )
    assert conclusions(path) == ["holds"]
    mixed = "['all_0.csv:better', 'all_1.csv:worse']"
    with refused("results.a", found="better, worse"):
        read_claims(written(three_methods, "better: a, than: worse", a=mixed))


def test_the_example_holds(tmp_path):
    place = shutil.copytree(EXAMPLE, tmp_path / "claims")
    runpy.run_path(str(place / "make_results.py"), run_name="__main__")
    verdicts = rematch.judge_claims(place / "claims.yaml")
    assert [verdict.status for verdict in verdicts] == [0, 0]


@pytest.mark.parametrize(
    "words",
    [["a.csv"], ["--layer", "experts"], ["--pair", "a", "b"], ["--season", "demo"]],
)
def test_no_word_beside_a_file_of_claims_is_ignored(three_methods, words, capsys):
    path = written(three_methods, "better: better, than: worse")
    assert main(["judge", *words, "--claims", str(path)]) == 2
    assert "--claims" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("claim", "key"),
    [
        ('result: better, printed: "high"', "claims[0]: printed"),
        ("better: better, than: ranked", "claims[0]: first_rank"),
    ],
)
def test_what_is_an_option_elsewhere_is_a_key_here(three_methods, claim, key):
    ranked = "{files: [worse_0.csv], first_rank: 1}"
    with refused(f"claims.yaml: {key}"):
        conclusions(written(three_methods, claim, ranked=ranked))
