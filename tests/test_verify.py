"""`verify` compares all that counts, and runs what cells need."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmark.__main__ import main
from benchmark.commands import verify
from benchmark.commands.tasks import Failure, Task
from benchmark.commands.verify import Compared
from benchmark.core.devices import fingerprint
from benchmark.data import results
from benchmark.data.rank_keys import I2T, T2I
from benchmark.data.results import CellResult, Ranks, Scores
from benchmark.season import parameter_files as files
from benchmark.season.parameter_files import read_params
from seasons import ROOT


def test_verify_compares_all_that_counts(monkeypatch):
    monkeypatch.chdir(ROOT)
    old = results.read_kept("demo", "shapes")["scan_t2i_avg/0"]
    record = old.record
    rsum = f"{record.metrics['rsum']:.2f}"
    assert verify.comparison(old, old, None).is_identical
    failed = verify.comparison(old, old, Failure("why"))
    assert failed == Compared(rsum, rsum, problem="why")
    assert verify.comparison(old, None, None) == Compared(rsum, "-", problem="not run")
    new = verify.comparison(None, old, None)
    assert new == Compared("-", rsum, problem="not committed")
    metrics = record.metrics | {"rsum": record.metrics["rsum"] + 1e-13}
    history = {name: values[:-1] for name, values in record.history.items()}
    changed = record.model_copy(update={"metrics": metrics, "history": history})
    new = replace(old, record=changed)
    assert verify.comparison(old, new, None).different == ("metrics", "history")
    # The ranks of all relevant items; where one side knows the best ranks alone, these.
    first = Ranks(np.array([0, 2, 5]), np.array([2, 1]))
    for kept, different in (
        (first, ()),
        (Ranks.of_best(np.array([0, 5])), ()),
        (Ranks(np.array([0, 3, 5]), np.array([2, 1])), ("ranks",)),
        (Ranks(np.array([0, 2, 5, 7]), np.array([2, 2])), ("ranks",)),
        (Ranks(np.array([0, 2, 5]), np.array([1, 2])), ("ranks",)),
    ):
        both = [with_ranks(old, ranks) for ranks in (first, kept)]
        assert verify.comparison(*both, None).different == different
    both = [with_ranks(old, first, t2i=Ranks.of_best(np.array([n]))) for n in (3, 4)]
    assert verify.comparison(*both, None).different == ("ranks",)


def with_ranks(
    result: CellResult, ranks: Ranks, t2i: Ranks | None = None
) -> CellResult:
    # without digests the record says nothing of them
    record = result.record.model_copy(update={"files": {}})
    of_ways = {I2T: ranks} | ({T2I: t2i} if t2i else {})
    npz = results.scores_npz(Scores(ranks=of_ways))
    return replace(result, record=record, arrays={results.RANKS: npz})


def test_verify_runs_what_cells_need_and_nothing_that_was_made(monkeypatch):
    monkeypatch.chdir(ROOT)
    params = read_params("demo")
    named = verify.tasks_of(params, ["shapes-cyclematch_adaptive-0"])
    assert list(named)[-1] == "evaluate@shapes-cyclematch_adaptive-0"
    assert {re.split("[-@]", name)[0] for name in named} == {
        *("fetch", "prepare", "pretrain", "encode", "train", "evaluate")
    }
    done = set()
    for name, each in named.items():
        assert done.issuperset(each.needs)
        done.add(name)
    everything = verify.tasks_of(params, list(params.everything))
    assert {f"evaluate@{key}" for key in params.everything} < everything.keys()
    assert "report" not in everything and "cells" not in everything


def test_verify_counts_the_cells_of_other_fingerprints(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    record = results.read_kept("demo", "shapes")["cca/0"].record
    here = record.model_copy(update={"numerics": {"fingerprint": fingerprint()}})
    other = record.model_copy(update={"numerics": {"fingerprint": "0123"}})
    verify.warn_of_other_fingerprints([here, here])
    assert capsys.readouterr().out == ""
    verify.warn_of_other_fingerprints([here, other, here])
    told = capsys.readouterr().out
    assert "1 of 3 cells" in told and "0123," in told


def test_a_method_is_verified_with_the_modules_beside_it(tmp_path, monkeypatch):
    params = read_params("demo")
    monkeypatch.chdir(tmp_path)
    mine = Path("mine")
    mine.mkdir()
    (mine / "method.py").write_text("import layers_of_mine\n")
    (mine / "layers_of_mine.py").write_text("WIDTH = 8\n")
    (mine / "notes.py").write_text("raise SystemExit\n")  # which it does not import
    methods = params.model_copy(update={"methods": {"mine": "mine/method.py"}})
    verify._make_project(Path("again"), methods)
    copied = {path.name for path in Path("again/mine").iterdir()}
    assert copied == {"method.py", "layers_of_mine.py"}


def test_a_relative_folder_of_weights_is_that_of_the_project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files.activate("demo")
    files.SEASONS.mkdir()
    files.write_local(files.Local(weights_dir="w"))
    found = set()

    def run_all(tasks: dict[str, Task], jobs: int) -> dict[str, Failure]:
        for each in files.read_shared().feature_sets.values():
            if each.words and each.words.vectors:
                found.add(Path(each.words.vectors).parent)
        return {}

    monkeypatch.setattr(verify.tasks, "run_all", run_all)
    monkeypatch.setattr(verify.numerics, "require", lambda mode, threads: None)
    monkeypatch.setattr(verify, "check_raw_files", lambda records: None)
    assert main(["verify", "flickr8k_glove", "--only", "flickr8k-cca-0"]) == 1
    assert found == {tmp_path / "w"}
