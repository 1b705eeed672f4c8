"""`import rematch`: the same answers as the command line, and nothing that a host
process would notice."""

import doctest
import importlib
import json
import os
import re
import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from report_seasons import enter_played_season

import rematch
from benchmark.__main__ import main
from benchmark.boards.season_boards import read_boards
from benchmark.scoring.evaluation import of_retrieval
from benchmark.scoring.ranking import Matrices
from benchmark.scoring.relevance import Relevance
from rematch.answers import Board

ROOT = Path(__file__).parent.parent
COUNT, SEEDS = 200, 2


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def hits(seed: int, share: float) -> np.ndarray:
    """(COUNT, SEEDS) hits of questions that are hard for all."""
    hard = np.random.default_rng(0).random((COUNT, 1))
    own = np.random.default_rng(seed).random((COUNT, SEEDS))
    return (hard + own < 2 * share).astype(int)


def write(name: str, hits_QS: np.ndarray, clusters: np.ndarray) -> None:
    tables = []
    for seed, hits_Q in enumerate(hits_QS.T):
        columns = {"query": range(len(hits_Q)), "value": hits_Q, "seed": seed}
        tables.append(pd.DataFrame(columns | {"cluster": clusters}))
    pd.concat(tables).to_csv(name, index=False)


def told(capsys, *words: object) -> list[dict] | dict:
    capsys.readouterr()
    assert main([*map(str, words), "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
def test_equal_scores_of_any_width_tie_and_ties_count_against_the_method(kind):
    # in double precision a tenth is rounded up
    equal = np.full((20, 20), np.longdouble(1) / 10).astype(kind)
    recalls = rematch.recalls(equal, owner=np.arange(20))
    assert (recalls["rsum"], recalls["i2t_medr"]) == (0.0, 20)
    vectors = np.random.default_rng(0).normal(size=(20, 3)).astype(kind)
    scored = rematch.score(vectors, vectors, owner=np.arange(20))
    assert (scored["i2t_r1"], scored["i2t_medr"]) == (100.0, 1)


# The same answers ---------------------------------------------------------------------


@pytest.mark.parametrize("claim", ["A > B", "B > A", "A = B", "A not better than B"])
def test_arrays_tables_and_files_are_judged_as_the_command_line_does(claim, capsys):
    clusters = np.arange(COUNT) // 2
    mine, theirs = hits(1, 0.6), hits(2, 0.4)
    write("mine.csv", mine, clusters)
    write("theirs.csv", theirs, clusters)
    (facts,) = told(capsys, "judge", "mine.csv", "theirs.csv", "--claim", claim)
    of_files = rematch.judge("mine.csv", Path("theirs.csv"), claim)
    assert of_files.to_dict() == facts
    frames = [pd.read_csv(name) for name in ("mine.csv", "theirs.csv")]
    of_frames = rematch.judge(*frames, claim)
    of_arrays = rematch.judge(mine, theirs, claim, clusters=clusters)
    of_each = rematch.judge(frames[0], "theirs.csv", claim)
    for verdict in (of_frames, of_arrays, of_each):
        for name in facts.keys() - {"first", "second", "notes"}:
            assert verdict.to_dict()[name] == facts[name], name
    assert main(["judge", "mine.csv", "theirs.csv", "--claim", claim, "--check"]) == (
        of_files.status
    )
    capsys.readouterr()
    assert main(["judge", "mine.csv", "theirs.csv", "--claim", claim]) == 0
    assert capsys.readouterr().out == f"{of_files.summary()}\n"


def test_ranks_of_a_matrix_are_judged_by_rsum(capsys):
    rng, owner = np.random.default_rng(3), np.repeat(np.arange(120), 2)
    given = []
    for noise in (1.0, 2.0):
        matrix = np.equal.outer(np.arange(120), owner) + noise * rng.random((120, 240))
        given.append(rematch.recalls(matrix, owner))
    better, worse = given
    verdict = rematch.judge(better, worse)
    assert verdict.holds and verdict.to_dict()["metric"] == "rsum"
    assert verdict.levels == pytest.approx((better["rsum"], worse["rsum"]), rel=1e-5)
    for name, recalled in zip(("a.csv", "b.csv"), given, strict=True):
        recalled.ranks.to_csv(name, index=False)
    (facts,) = told(capsys, "judge", "a.csv", "b.csv")
    assert (facts["low"], facts["high"]) == verdict.interval
    one_way = better.ranks[better.ranks["direction"] == "t2i"]
    worst = np.where(np.arange(240) < 9, np.arange(240), -1)
    of_array = rematch.judge(one_way["rank"], worst, ranks=True, clusters=owner)
    assert of_array.levels[0] == pytest.approx(better["t2i_r1"], rel=1e-5)


def test_a_printed_number_is_judged_as_on_the_command_line(capsys):
    mine = hits(1, 0.6)
    write("mine.csv", mine, np.arange(COUNT))
    (facts,) = told(capsys, "judge", "mine.csv", "--printed", "71.20")
    assert rematch.judge_printed("mine.csv", "71.20").to_dict() == facts
    verdict = rematch.judge_printed(mine, 71.2, margin=30)
    assert verdict.interval == (facts["low"], facts["high"])
    assert verdict.conclusion in verdict.summary()


def test_recalls_are_those_of_an_evaluation():
    """Integers, so that many scores tie."""
    rng, owner = np.random.default_rng(1), np.repeat(np.arange(60), 3)
    matrix = np.equal.outer(np.arange(60), owner) + rng.integers(0, 3, (60, 180))
    found = rematch.recalls(matrix, owner)
    relevance = Relevance.of(np.arange(60), owner)
    expected = of_retrieval(Matrices(i2t=matrix.astype(float)), relevance)
    assert len(found) > 10
    for name, value in found.items():
        assert value == expected.metrics[name], name
    low, high = found.intervals["i2t_r1"]
    assert 0 <= low < found["i2t_r1"] < high <= 100


def test_embeddings_are_scored_by_cosines():
    rng, owner = np.random.default_rng(2), np.arange(50).repeat(2)
    images = rng.normal(size=(50, 8)).astype(np.float32)
    captions = images[owner] + rng.normal(size=(100, 8)).astype(np.float32)
    found = rematch.score(images, captions * 7, owner)
    x = images / np.linalg.norm(images, axis=1, keepdims=True)
    y = captions / np.linalg.norm(captions, axis=1, keepdims=True)
    assert dict(found) == pytest.approx(dict(rematch.recalls(x @ y.T, owner)))
    # a caption that is there twice ties with itself, which counts against both
    same = rematch.score(np.eye(3), np.eye(3)[[0, 0, 2]], [0, 1, 2])
    assert same["i2t_r1"] == pytest.approx(100 / 3)


def test_token_matrices_are_scored_by_max_sim():
    rng, owner = np.random.default_rng(3), np.arange(30).repeat(2)
    images = [rng.normal(size=(rng.integers(2, 6), 4)) for _ in range(30)]
    captions = [images[row][:2] + rng.normal(size=(2, 4)) for row in owner]
    similarities = np.array(
        [[(c @ i.T).max(1).sum() for c in captions] for i in images]
    )
    expected = dict(rematch.recalls(similarities, owner))
    found = rematch.score(images, captions, owner)
    assert dict(found) == pytest.approx(expected)
    # captions of one length may be one array
    assert dict(rematch.score(images, np.stack(captions), owner)) == dict(found)


def test_printed_and_plan_give_what_the_commands_give(capsys):
    facts = told(capsys, "printed", "scan/1")
    found = rematch.printed("scan/1")
    assert list(found) == facts and len(found.to_frame()) > len(found)
    assert "R@1" not in found.summary() and found[0]["table"] in found.summary()
    words = "--difference 10 --sd-seeds 2.1 --se-images 3.5 --of-images 1000".split()
    words += ["--seeds", "2", "3", "--images", "500", "1000"]
    given = {"sd_seeds": 2.1, "se_images": 3.5, "of_images": 1000}
    planned = rematch.plan(10, **given, seeds=[2, 3], images=[500, 1000])
    assert planned.to_dict() == told(capsys, "plan", *words)
    arrays = {"seeds": np.array([2, 3]), "images": np.array([500, 1000])}
    assert rematch.plan(10, **given, **arrays).summary() == planned.summary()
    assert planned.table.loc[3, 1000] > planned.table.loc[2, 500] > 0
    assert main(["plan", *words]) == 0
    assert capsys.readouterr().out == f"{planned.summary()}\n"


def test_a_table_is_audited(capsys):
    table = pd.DataFrame({"method": ["a", "b"], "R@1": ["43.15", "43.1"]})
    table["R@5"] = ["41.0", "60.0"]
    table.to_csv("table.csv", index=False)
    facts = told(capsys, "audit", "table.csv", "--queries", "1000")
    for given in (table, "table.csv"):
        found = rematch.audit(given, 1000)
        assert found.to_dict() == {"findings": facts} and len(facts) == 2
        assert found.summary().count("a: ") == 2


# What is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rematch.judge([1, 0], [1, 0], "mine wins"), "a claim on A and B"),
        (lambda: rematch.judge("a.csv", "a.csv"), "a.csv"),
        (lambda: rematch.judge("none.csv", "other.csv"), "found nothing"),
        (lambda: rematch.judge(["a", "b"], [1, 0]), "numbers (queries,)"),
        (lambda: rematch.judge([1, 0], [1, 0], clusters=[1]), "each of 2"),
        (lambda: rematch.judge([1] * 9, [1] * 8), "expected"),
        (lambda: rematch.judge([-1] * 9, [0] * 9, ranks=True), "not found among"),
        (lambda: rematch.judge(pd.DataFrame({"q": [1]}), [1]), "the columns query"),
        (lambda: rematch.judge_printed([1, 0] * 99, "many"), "a number"),
        (lambda: rematch.recalls(np.eye(2), [0, 0]), "rows from 0 to 1"),
        (lambda: rematch.recalls(np.eye(2), [0]), "each of 2 captions"),
        (lambda: rematch.recalls([[1, np.nan], [0, 1]], [0, 1]), "finite scores"),
        (lambda: rematch.recalls(np.ones(3), [0, 0, 0]), "(images, captions)"),
        (lambda: rematch.score(np.eye(2), np.eye(3)[:2], [0, 1]), "rows of 2 numbers"),
        (lambda: rematch.score(np.eye(2), np.zeros((2, 2)), [0, 1]), "a direction"),
        (lambda: rematch.score([[np.inf]], [[1.0]], [0]), "finite numbers"),
        (lambda: rematch.score([np.eye(2)], np.eye(2)[:1], [0]), "captions[0]"),
        (lambda: rematch.score([np.eye(2)], [np.eye(3)], [0]), "rows of 2 numbers"),
        (lambda: rematch.score([np.eye(2), np.eye(3)], [np.eye(2)], [0]), "2 to 3"),
        (lambda: rematch.printed("no such row"), "a printed number"),
        (lambda: rematch.plan(10), "--season"),
        (lambda: rematch.plan(10, kind="best"), "one of ordered"),
        (lambda: rematch.leaderboard("no_such_season"), "no_such_season"),
    ],
)
def test_mistakes_are_value_errors_of_one_line(call, message):
    with pytest.raises(rematch.UserError) as refused:
        call()
    assert isinstance(refused.value, ValueError)
    assert message in str(refused.value) or message == "--season"
    assert "\n" not in str(refused.value)


def test_answers_cannot_be_changed():
    verdict = rematch.judge(hits(1, 0.6), hits(2, 0.4))
    with pytest.raises(FrozenInstanceError):
        verdict.conclusion = "holds"
    verdict.to_dict()["notes"].append("x")
    assert "x" not in verdict.notes
    found = rematch.recalls(np.eye(2), [0, 1])
    with pytest.raises(TypeError):
        found.values_of["rsum"] = 0


def test_answers_are_tables_in_notebooks():
    verdict = rematch.judge(hits(1, 0.6), hits(2, 0.4))
    for answer in (verdict, rematch.recalls(np.eye(2), [0, 1]), rematch.printed(58.6)):
        assert answer._repr_html_().startswith("<table")
    assert (
        "&gt;" in rematch.Verdict(verdict.to_dict() | {"reason": "a > b"})._repr_html_()
    )


# The host process ---------------------------------------------------------------------

HOST = """
import os, sys
before = dict(os.environ)
import rematch
hits = [1, 1, 0, 1] * 50
assert rematch.judge(hits, hits[::-1], "A = B").conclusion
assert rematch.judge_printed(hits, 75).conclusion
assert rematch.printed(58.6).rows
assert rematch.recalls([[0.9, 0.1], [0.3, 0.2]], [0, 1])["i2t_r1"] == 50
given = {"sd_seeds": 2.1, "se_images": 3.5, "of_images": 1000}
assert rematch.plan(10, **given, seeds=[3], images=[1000]).summary()
assert rematch.score([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]], [0, 1])
assert dict(os.environ) == before
loaded = {"torch", "dvc", "matplotlib", "gensim", "seaborn"} & sys.modules.keys()
assert not loaded, loaded
from benchmark.core import numerics
assert numerics.current().mode == numerics.UNPINNED
"""


def test_a_host_process_is_left_as_it_is(tmp_path):
    clean = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    command = [sys.executable, "-c", HOST]
    environment = clean | {"PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)


def test_commands_pin_as_before(tmp_path):
    code = "import os, benchmark; assert os.environ['OPENBLAS_CORETYPE'] == 'Haswell'"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)


def test_the_package_does_not_import_its_library():
    for path in (ROOT / "benchmark").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "import rematch" not in text and "from rematch" not in text, path


# Documents ----------------------------------------------------------------------------

PAGE = (ROOT / "docs/library.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_documentation_run(example, capsys):
    exec(compile(example, "docs/library.md", "exec"), {})
    assert capsys.readouterr().out


def test_there_are_three_examples_and_every_function_is_named():
    assert len(EXAMPLES) == 3
    for name in rematch.__all__:
        assert f"rematch.{name}" in PAGE or f"`{name}" in PAGE, name


@pytest.mark.parametrize("name", ["comparing", "scoring", "looking_up"])
def test_the_examples_of_docstrings_run(name):
    module = importlib.import_module(f"rematch.{name}")
    failed, tried = doctest.testmod(module, extraglobs={"rematch": rematch, "pd": pd})
    assert tried and not failed


def test_the_leaderboard_of_a_season(tmp_path_factory, tmp_path, monkeypatch):
    params = enter_played_season(tmp_path_factory, tmp_path / "work", monkeypatch)
    (board, *_) = read_boards(params)
    frame = rematch.leaderboard(params.season, board.dataset)
    assert set(frame["dataset"]) == {board.dataset}
    ranked = frame[: len(board.ranked)]
    assert list(ranked["rank"]) == list(range(1, len(ranked) + 1))
    means = [row.mean("rsum") for row in board.ranked]
    assert list(ranked["rsum"]) == pytest.approx(means)
    with pytest.raises(rematch.UserError):
        rematch.leaderboard(params.season, "no_such_dataset")


def test_packed_bits_are_no_coordinates():
    packed = np.random.default_rng(0).integers(0, 256, (4, 8), np.uint8)
    with refused("images", "floating-point", "packed bits"):
        rematch.score(packed, packed, np.arange(4))


@pytest.mark.parametrize(
    ("call", "where"),
    [
        (lambda: rematch.recalls([[1, 2], [3]], [0, 1]), "matrix"),
        (lambda: rematch.recalls([["a", "b"], ["c", "d"]], [0, 1]), "matrix"),
        (lambda: rematch.recalls([[1, 2], [3, 4]], [0, [1]]), "owner"),
        (lambda: rematch.score([[1, 2], [3]], [[1, 2], [3, 4]], [0, 1]), "images"),
        (lambda: rematch.score([[[1], [2, 3]]], [[[1]]], [0]), "item 0"),
        (lambda: rematch.judge([1, 2, [3]], [1, 2, 3]), "A"),
        (lambda: rematch.judge([1, 2], [2, 1], clusters=["a", ["b"]]), "clusters"),
        (lambda: rematch.judge(np.ma.masked_equal([1, 0], 0), [1, 0]), "A"),
        (lambda: rematch.score([], [np.eye(2)], []), "images"),
    ],
)
def test_what_is_no_array_is_refused_by_name(call, where):
    with refused(where):
        call()


@pytest.mark.parametrize("given", ["gradient", "bfloat16"])
def test_a_tensor_that_numpy_cannot_read_is_refused_in_one_line(given):
    torch = pytest.importorskip("torch")
    matrix = torch.eye(2, requires_grad=True)
    if given == "bfloat16":
        matrix = torch.eye(2, dtype=torch.bfloat16)
    with refused("matrix", do="detach"):
        rematch.recalls(matrix, [0, 1])


def test_options_of_arrays_are_no_options_of_tables():
    values = pd.DataFrame({"query": range(4), "value": [0, 2, 1, 3]})
    recalled = rematch.recalls(np.eye(4), range(4))
    with refused("ranks", found="column value"):
        rematch.judge(values, values, ranks=True)
    with refused("ranks", found="column value"):
        rematch.board({"a": values, "b": values}, ranks=True)
    with refused("clusters", found="Recalls"):
        rematch.judge(recalled, recalled, clusters=[0] * 8)
    with refused("clusters", found="str"):
        rematch.judge("a.csv", "b.csv", clusters=[0] * 4)
    with refused("clusters", found="str"):
        rematch.board({"a": "a.csv", "b": "b.csv"}, clusters=[0] * 4)


@pytest.mark.parametrize("kind", ["float32", "float64", "Float32", "object"])
def test_numbers_of_any_precision_are_audited_alike(kind):
    table = pd.DataFrame({"R@1": [43.1, 44.0, None], "m": ["a", "b", "c"]})
    audited = rematch.audit(table.astype({"R@1": kind}), 1000)
    assert not audited.impossible
    wrong = pd.DataFrame({"R@1": [43.15]}).astype(kind)
    (found,) = rematch.audit(wrong, 1000).impossible
    assert found["rule"] == "count"


def test_images_and_captions_are_counted_apart():
    table = pd.DataFrame({"i2t_r1": ["43.12"], "t2i_r1": ["43.12"]})
    (found,) = rematch.audit(table, (1000, 5000)).impossible
    assert list(found["numbers"]) == ["i2t_r1"]


def test_numbers_of_half_precision_are_not_audited():
    table = pd.DataFrame({"R@1": [43.1]}).astype("float16")
    with refused("table: i2t_r1", found="float16"):
        rematch.audit(table, 1000)


@pytest.mark.parametrize(
    "folds", [0, 2.5, float("nan"), pytest.param(10**400, id="huge")]
)
def test_folds_are_a_number_of_them(folds):
    with refused("--folds"):
        rematch.audit(pd.DataFrame({"R@1": ["43.1"]}), 1000, folds=folds)


def test_the_frame_of_a_board_has_the_ends_of_its_ranks():
    facts = {"rank": 2, "ranks": [1, 3], "levels": {"made": 50.0, "rank": 40.0}}
    frame = Board({"rows": [{"name": "a"} | facts], "notes": []}).to_frame()
    (line,) = frame.reset_index().to_dict("records")
    expected = {"name": "a", "rank": 2, "first_rank": 1, "last_rank": 3}
    assert line == expected | {"made": 50.0, "level on rank": 40.0}


def test_series_of_another_order_are_not_compared_by_place():
    hits = pd.Series([1, 0, 1, 0] * 50)
    with refused("A, B", found="another index"):
        rematch.judge(hits, hits[::-1])
    with refused("A, clusters", found="another index"):
        rematch.judge(hits, [0] * 200, clusters=pd.Series(range(200))[::-1])
    with refused("a, b", found="another index"):
        rematch.board({"a": hits, "b": hits[::-1]})


@pytest.mark.parametrize("scale", [0, -1, float("inf"), float("nan")])
def test_a_scale_is_a_number_above_0(scale):
    with refused("scale", "above 0"):
        rematch.judge([1, 0], [0, 1], scale=scale)
    with refused("scale", "above 0"):
        rematch.judge_printed([1, 0], "50", scale=scale)


@pytest.mark.parametrize("first_rank", [2, -1, "1"])
def test_the_first_rank_is_0_or_1(first_rank):
    with refused("first_rank", "0 or 1"):
        rematch.judge([1, 3], [2, 1], ranks=True, first_rank=first_rank)


@pytest.mark.parametrize("seeds", [[2.5], [0]])
def test_a_number_of_seeds_is_whole_and_no_less_than_1(seeds):
    with refused("--seeds"):
        rematch.plan(1, sd_seeds=1, se_images=1, of_images=1000, seeds=seeds)


def test_what_nullable_columns_lack_is_empty():
    table = pd.DataFrame({"R@1": ["43.1", None], "R@5": ["50.1", "60.2"]})
    assert rematch.audit(table.convert_dtypes(), 1000).findings == ()
    found = []
    for kind in ("float64", "Int64"):
        sides = []
        for ranks in ([0, 1, 2, None], [0, 0, 2, None]):
            side = pd.DataFrame({"query": range(200), "rank": ranks * 50})
            sides.append(side.astype({"rank": kind}))
        found.append(rematch.judge(*sides, metric="r1").to_dict())
    assert found[0] == found[1]


def test_presets_are_not_compared_with_what_a_program_has():
    recalled = rematch.recalls(np.eye(4), range(4))
    for sides in ((recalled, "flickr8k:cca"), ("flickr8k:cca", recalled)):
        with refused("judge", found="one of each", do="export"):
            rematch.judge(*sides)


def test_presets_of_two_seasons_are_not_compared():
    with refused("cyclematch", "one season", "of flickr8k_strong"):
        rematch.judge("flickr8k:vse", "flickr8k_strong:cyclematch")
