"""`verify` in its scratch folder: its report, the user's folders, its options. Nothing is trained
here; test_pipeline.py plays cells again."""

import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from report_seasons import CAPTIONS, IMAGES, enter_played_season
from zc.lockfile import LockFile

from benchmark.__main__ import main
from benchmark.analysis.replays import Agreement, Replay
from benchmark.commands import task_queue, verify
from benchmark.core.files import read_json, write_json
from benchmark.season.parameter_files import Local, read_local, read_params, write_local
from benchmark.season.parameters import DatasetSettings, FeatureSet, SentenceEncoder, WordVectors
from seasons import params_of

SCRATCH = verify.SCRATCH / "try"


@pytest.fixture
def season(tmp_path_factory, tmp_path, monkeypatch):
    """Playing it again gives what is there."""
    params = enter_played_season(tmp_path_factory, tmp_path / "played", monkeypatch)
    root = Path.cwd()

    def play(tasks, workers) -> dict[str, str]:
        shutil.copytree(root / "data/prepared", "data/prepared")
        for cell in [*params.cells.values(), *params.fusions.values()]:
            shutil.copytree(root / cell.folder, cell.folder)
        return {}

    monkeypatch.setattr(task_queue, "play", play)
    return params


def bring_along() -> None:
    """A row of scores that were made elsewhere."""
    for dataset in ("open", "gated"):
        card = Path(f"data/prepared/{dataset}/card.json")
        write_json(card, read_json(card) | {"ways": ["i2t", "t2i"], "folds": 1})
    np.save("scores.npy", np.random.default_rng(0).normal(size=(IMAGES, CAPTIONS)))
    words = ["--dataset", "open", "--name", "mine", "--matrix", "scores.npy"]
    assert main(["score", *words]) == 0


def test_rows_that_were_brought_along_are_not_played_again(season, capsys):
    bring_along()
    main(["verify", "try"])
    told = capsys.readouterr()
    assert told.err == ""
    assert f"of {len(season.cells) + len(season.fusions)} cells: " in told.out
    assert f"the replay's report: {SCRATCH}/reports" in told.out
    assert "mine" not in (SCRATCH / "reports/try/README.md").read_text()


def test_where_nothing_is_committed_it_says_so():
    def said(**agreements: int) -> str:
        counts = {str(Agreement[kind]): count for kind, count in agreements.items()}
        replay = Replay(machine="m", fingerprint="f", cells=2, agreements=counts)
        return verify._summary(replay, [], Path("none")).splitlines()[-1]

    assert said(NEW=2) == "fingerprint f; nothing committed"
    assert said(NEW=1, IDENTICAL=1) == "fingerprint f, as committed"


def test_folders_of_this_machine_stay_what_they_are(season, monkeypatch):
    local = Local(weights_dir="weights", sources={"open": "raw/open", "gated": "/gated"})
    write_local(local)
    seen = []
    monkeypatch.setattr(verify, "tasks_of", lambda params, chosen: seen.append(params) or {})
    root = Path.cwd()
    main(["verify", "try"])
    (played,) = seen
    expected = Local(
        weights_dir=f"{root}/weights", sources={"open": f"{root}/raw/open", "gated": "/gated"}
    )
    assert played.weights_dir == expected.weights_dir
    assert {name: s.source for name, s in played.datasets.items()} == expected.sources
    assert read_local() == local
    monkeypatch.chdir(SCRATCH)
    assert read_local() == expected
    assert read_params("try").weights_dir == expected.weights_dir


def test_an_own_method_comes_with_its_presets(season):
    Path("own").mkdir()
    for name in ("mine.py", "mine.yaml", "other.yaml"):
        Path("own", name).write_text(name)
    with verify._scratch(SCRATCH, season.model_copy(update={"methods": {"mine": "own/mine.py"}})):
        assert {path.name: path.read_text() for path in Path("own").iterdir()} == {
            "mine.py": "mine.py",
            "mine.yaml": "mine.yaml",
        }


def test_relative_paths_of_a_season_are_anchored(tmp_path, monkeypatch):
    """As `init my_pictures` writes one; files of vectors lie in the folder of weights, if any."""
    monkeypatch.chdir(tmp_path)
    words = WordVectors(vectors="words.bin")
    facts = {"dataset": "d", "reader": "d", "folder": "f", "source": "data/prepared/d"}
    known = FeatureSet(kind="words", encoder="word2vec", words=words, **facts)
    sentence = SentenceEncoder(weights="/w/infersent.pkl", words=words)
    other = FeatureSet(kind="sentences", encoder="bilstm_max", sentence=sentence, **facts)
    datasets = {"d": DatasetSettings(source="my_pictures"), "e": DatasetSettings(reader="d")}
    params = params_of(datasets=datasets, feature_sets={"known": known, "other": other})
    anchored = verify._anchored(params)
    assert anchored.datasets["d"].source == f"{tmp_path}/my_pictures"
    assert anchored.datasets["e"].source is anchored.weights_dir is None
    sets = anchored.feature_sets
    assert sets["known"].words.vectors == f"{tmp_path}/words.bin"
    assert sets["other"].sentence.weights == "/w/infersent.pkl"
    assert sets["other"].sentence.words.vectors == f"{tmp_path}/words.bin"
    assert {key: s.folder for key, s in sets.items()} == {"known": "f", "other": "f"}


def test_no_jobs_are_refused_as_play_does(season, capsys):
    for verb in ("verify", "play"):
        assert main([verb, "try", "--jobs", "0"]) == 2
        assert "--jobs: expected 1 or more, found 0" in capsys.readouterr().err
    assert not SCRATCH.exists()


def test_a_second_one_of_the_season_is_refused(season, capsys):
    verify.SCRATCH.mkdir(parents=True)
    with closing(LockFile(str(verify.SCRATCH / "try.lock"))):
        assert main(["verify", "try"]) == 2
    told = capsys.readouterr().err
    assert "verify try: expected one at a time in this folder" in told
    assert not (verify.SCRATCH / "try").exists()
