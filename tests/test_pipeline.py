"""The pipelines of seasons: what stages depend on, what an edit makes stale, and what
stays."""

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from builders import record
from dvc.repo import Repo
from refusals import refused

from benchmark.__main__ import main
from benchmark.contracts import datasets, methods
from benchmark.core.files import read_yaml, write_archive, write_text
from benchmark.data import results
from benchmark.season import pipeline
from benchmark.season.parameter_files import (
    SEASONS,
    Local,
    add_brought,
    keep_file,
    read_params,
    remove_brought,
    resolved,
    write_local,
)
from benchmark.season.parameters import RETRIEVED, SAMPLES, Brought
from seasons import ROOT, clone

pytestmark = pytest.mark.filterwarnings("ignore")  # of what DVC imports
COMMITTED = sorted(path.parent.name for path in ROOT.glob("seasons/*/cells.yaml"))
SMALL = Path("seasons/small/season.yaml")
SEASON = {
    "title": "Small",
    "datasets": {
        "shapes": {
            "image": {"network": "drawn_cnn", "input_size": 96},
            "words": {"size": 16},
            "sentence": {"hglmm": {"centres": 2}},
        }
    },
    "presets": [
        "vse",
        "scan_t2i_avg",
        "scan_i2t_lse",
        "scan_t2i_avg_i2t_lse",
        "two_branch_linear",
    ],
    "seeds": [0],
    "pages": ["vse"],
    "answers": ["scan_t2i_avg"],
}
ROWS = ("scan_t2i_avg", "scan_i2t_lse")
SCAN = {
    f"{verb}@shapes-{preset}-0" for verb in ("train", "evaluate") for preset in ROWS
}
FUSION = "evaluate_2@shapes-scan_t2i_avg_i2t_lse-0"


# Pipelines that are committed ---------------------------------------------------------


@pytest.mark.parametrize("name", COMMITTED)
def test_what_is_committed_is_what_would_be_written_today(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    params = resolved(name)
    assert pipeline.edited(params) == set()
    pipeline.write_digests(params)  # refuses where the pipelines are others
    assert len(list((SEASONS / name).iterdir())) <= 5


@pytest.mark.parametrize("name", COMMITTED)
def test_what_stages_read_is_written_by_one_stage_and_no_training_reads_results(
    name, monkeypatch
):
    monkeypatch.chdir(ROOT)
    stages = pipeline.all_stages(read_params(name))
    written = [path for stage in stages.values() for path in stage.outputs]
    assert len(set(written)) == len(written)
    for key, stage in stages.items():
        made = {path for path in stage.reads if path.startswith("data/")}
        folders = {path for path in made if key.startswith("collect")}
        assert made - folders <= set(written), key
        assert all(
            any(w.startswith(f"{path}/") for w in written) for path in folders
        ), key
        of_results = [path for path in stage.reads if "results/" in path]
        assert key == "report" or not of_results


# A small season, without a training ---------------------------------------------------


@pytest.fixture(scope="module")
def committed(tmp_path_factory) -> Path:
    """A repository with the season SMALL, in which every stage left an empty file or
    folder."""
    folder = tmp_path_factory.mktemp("repository")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        clone()
        write_season({})
        stages = pipeline.all_stages(read_params("small")).values()
        for path in [Path(path) for stage in stages for path in stage.outputs]:
            if path.suffix == ".zip":
                write_archive(path, {})
            elif path.parts[0] == "results":
                write_text(path, "{}\n")
            elif path.suffix:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.exists() or path.touch()
            else:
                path.mkdir(parents=True, exist_ok=True)
        commit()
    return folder


@pytest.fixture
def repository(committed, tmp_path, monkeypatch) -> None:
    """A copy of it, whose plug-ins are those of the copy."""
    monkeypatch.chdir(shutil.copytree(committed, tmp_path / "work", symlinks=True))
    monkeypatch.setattr(methods, "FOLDER", Path("methods").resolve())
    monkeypatch.setattr(datasets, "FOLDER", Path("datasets").resolve())


def write_season(changes: dict) -> None:
    SMALL.parent.mkdir(parents=True, exist_ok=True)
    SMALL.write_text(yaml.safe_dump(SEASON | changes))
    assert main(["season", "small"]) == 0


def commit() -> None:
    """What `dvc repro` writes into the lock files, as if every stage had left what is
    there."""
    with Repo() as repo:
        repo.commit(force=True)


def stale() -> set[str]:
    # digests as the code is: the stages that write these are quick, and run first
    pipeline.write_readers()
    pipeline.write_digests(read_params("small"))
    with Repo() as repo:
        changed = [address.rpartition(":") for address in repo.status()]
    own = {
        name
        for file, _, name in changed
        if file.startswith(("seasons/small", "seasons/shared"))
    }
    return own - {"cells", "readers"}


def edit(file: str, old: str, new: str) -> None:
    text = Path(file).read_text()
    assert old in text
    Path(file).write_text(text.replace(old, new, 1))


def test_nothing_is_stale_after_everything_ran_nor_written_again(repository):
    assert stale() == set()
    assert main(["season", "small"]) == 0
    assert stale() == set()
    # Files that stay as they are are not touched: DVC would hash them again.
    files = [*SEASONS.glob("*/*.yaml")]
    before = {path: path.stat().st_mtime_ns for path in files}
    assert main(["season", "small"]) == 0
    assert {path: path.stat().st_mtime_ns for path in files} == before


def test_stages_of_cells_are_spelt_out_as_dvc_does(repository):
    stages = pipeline.all_stages(read_params("small"))
    with Repo() as repo:
        known = {stage.name: stage for stage in repo.index.stages}
    assert set(stages) < set(known)
    for name, stage in stages.items():
        assert known[name].cmd == stage.command, name
        assert {str(out) for out in known[name].outs} == set(stage.outputs), name
        files = {str(dep) for dep in known[name].deps if not hasattr(dep, "params")}
        assert files == set(stage.reads), name


PRESETS = [preset for preset in SEASON["presets"] if preset != "scan_t2i_avg_i2t_lse"]
TRAININGS = {f"train@shapes-{preset}-0" for preset in PRESETS}
EVALUATIONS = {f"evaluate@shapes-{preset}-0" for preset in PRESETS} | {FUSION}
VERSIONS, IMPORT = "benchmark/versions.yaml", ("import", "import os\nimport")


@pytest.mark.parametrize(
    "file, old, new, expected",
    [
        ("methods/scan.py", '"""', '"""Another docstring. ', set()),
        ("methods/scan.py", "import math", "import math  # a comment\n", set()),
        ("methods/scan.py", "import math", "import math\n\nEDITED = True", SCAN),
        ("datasets/shapes.py", '"""', '"""Another docstring. ', set()),
        ("benchmark/features/hglmm.py", *IMPORT, set()),
        ("benchmark/core/files.py", *IMPORT, set()),
        ("benchmark/train/__main__.py", *IMPORT, set()),
        ("benchmark/report/figure_style.py", *IMPORT, {"report"}),
        (VERSIONS, "report: 2", "report: 3", {"report"}),
        (VERSIONS, "train: 1", "train: 2", TRAININGS),
        (VERSIONS, "evaluate: 1", "evaluate: 2", EVALUATIONS),
    ],
)
def test_an_edit_makes_stale_what_it_decides_and_nothing_else(
    repository, file, old, new, expected
):
    edit(file, old, new)
    assert stale() == expected


def test_code_of_a_reader_makes_its_data_stale(repository):
    edit("datasets/shapes.py", "import", "EDITED = True\nimport")
    read = {
        "fetch-shapes",
        "prepare-shapes",
        "pretrain",
        "encode-shapes-drawn_cnn_96_g6_flip",
    }
    assert stale() == read


def test_an_option_in_the_season_file_makes_its_cells_stale_and_other_stages_are_refused(
    repository, capsys
):
    """Also before `rematch season`, as `dvc exp run -S` and an editor leave it."""
    SMALL.write_text(yaml.safe_dump(SEASON | {"options": {"vse": {"epochs": 2}}}))
    assert stale() == {"train@shapes-vse-0", "evaluate@shapes-vse-0", "report"}
    assert main(["season", "small", "--digests"]) == 0
    SMALL.write_text(yaml.safe_dump(SEASON | {"seeds": [0, 1]}))
    assert main(["season", "small", "--digests"]) == 2
    assert "run: rematch season small" in capsys.readouterr().err


def everything() -> dict[Path, tuple[int, bytes]]:
    files = (
        p
        for p in Path().rglob("*")
        if p.is_file() and p.parts[0] not in (".dvc", ".git")
    )
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def dry(capsys, *arguments: str) -> list[str]:
    capsys.readouterr()
    assert main(["play", "small", "--dry", *arguments]) == 0
    return capsys.readouterr().out.split()


def test_a_dry_run_tells_what_the_season_file_asks_for_now_and_writes_nothing(
    repository, capsys
):
    assert dry(capsys) == ["everything", "is", "up", "to", "date"]
    text = {"seeds_of": {"vse": [0, 1]}, "options": {"scan": {"epochs": 2}}}
    SMALL.write_text(yaml.safe_dump(SEASON | text))
    edit("datasets/shapes.py", "import", "EDITED = True\nimport")
    before = everything()
    told = set(dry(capsys))
    new = {"train@shapes-vse-1", "evaluate@shapes-vse-1", "collect@shapes"}
    assert SCAN | new | {"cells", "report", "prepare-shapes"} <= told
    assert not told & {"train@shapes-vse-0", "train@shapes-two_branch_linear-0"}
    of_scan = set(dry(capsys, "--only", "*scan_i2t*"))
    assert "train@shapes-scan_i2t_lse-0" in of_scan and not new & of_scan
    assert everything() == before


def test_folders_of_this_machine_are_in_no_pipeline(repository):
    """So that `dvc repro` finds the stages that `rematch season` wrote."""
    before = Path("seasons/shared/params.yaml").read_bytes()
    write_local(Local(sources={"shapes": "/elsewhere"}, weights_dir="/weights"))
    assert main(["season", "small", "--digests"]) == 0
    assert main(["play", "small", "--only", "*vse*"]) == 0
    assert Path("seasons/shared/params.yaml").read_bytes() == before


def test_a_failure_of_an_earlier_run_is_told_and_is_none_of_this_one(
    repository, capsys
):
    cell = read_params("small").cells["shapes-vse-0"]
    failed = record(status="failed", reason="its worker died")
    kept = results.CellResult(place=cell.inside, record=failed)
    results.write_folder(Path("results/small/shapes"), {cell.name: kept})
    commit()
    assert main(["play", "small"]) == 0
    said = capsys.readouterr().out
    assert f"{cell.key}: failed: its worker died (of an earlier run)" in said
    assert "0 stages run" in said


def test_a_season_file_from_elsewhere_is_taken_again_where_it_was_edited(
    repository, capsys
):
    own, copy = Path("mine.yaml").resolve(), SEASONS / "mine/season.yaml"
    own.write_text(yaml.safe_dump(SEASON))
    assert main(["season", "mine.yaml"]) == 0
    own.write_text(yaml.safe_dump(SEASON | {"seeds": [0, 1]}))
    assert main(["play", "--dry"]) == 2
    assert f"{own}: expected the text that is in {copy}" in capsys.readouterr().err
    assert main(["season", "mine.yaml"]) == 0
    assert copy.read_bytes() == own.read_bytes()
    assert dry(capsys)
    own.write_text(yaml.safe_dump(SEASON))
    copy.write_text(yaml.safe_dump(SEASON | {"title": "Edited"}))
    with refused(copy):
        keep_file(own, "mine")


def test_a_row_that_was_brought_is_removed_by_one_command(repository, capsys):
    folder = Path("results/small/shapes/external")
    rows = {}
    for seed in (0, 1):
        row = Brought(dataset="shapes", preset="other", seed=seed)
        add_brought("small", row)
        place = f"small/shapes/{row.name}"
        rows[row.name] = results.CellResult(place=place, record=record("other", seed))
    results.write_external(folder, rows)
    with refused("--remove", found="other?"):
        remove_brought("small", "othr")
    claims = {"claims": [{"better": "other", "than": "vse"}]}
    SMALL.write_text(yaml.safe_dump(SEASON | claims))
    assert main(["season", "--remove", "other"]) == 2
    assert (
        "claims: number 1" in capsys.readouterr().err
        and len(results.read_folder(folder)) == 2
    )
    write_season({})
    assert main(["season", "--remove", "shapes-other-0"]) == 0
    assert list(read_params("small").brought) == ["shapes-other-1"]
    assert list(results.read_folder(folder)) == ["other/1"]
    assert main(["season", "--remove", "other"]) == 0
    assert not folder.exists() and not (SEASONS / "small/external.yaml").exists()
    assert stale() == set()


def test_a_preset_that_comes_back_is_up_to_date(repository):
    write_season({"presets": ["scan_t2i_avg"]})
    assert not (SEASONS / "small/dvc.yaml").read_text().count("vse")
    write_season({})
    assert stale() == set()


def test_fusions_and_reports_need_what_their_members_left_and_git_keeps_what_pages_show(
    repository,
):
    cells = read_params("small").cells
    vse, scan = cells["shapes-vse-0"], cells["shapes-scan_t2i_avg-0"]
    assert vse.place(SAMPLES) == "data/cells/small/shapes/vse/0/scores/samples.npz"
    assert vse.place(RETRIEVED) == "data/samples/small/shapes/vse/0/retrieved.npz"
    assert scan.place(SAMPLES) == "data/samples/small/shapes/scan_t2i_avg/0/samples.npz"
    assert (
        scan.place(RETRIEVED)
        == "data/cells/small/shapes/scan_t2i_avg/0/scores/retrieved.npz"
    )
    written = pipeline.all_stages(read_params("small"))["evaluate@shapes-vse-0"].outputs
    assert written == [vse.folder, str(Path(vse.place(RETRIEVED)).parent)]
    stages = pipeline.all_stages(read_params("small"))
    checkpoints = [f"data/checkpoints/small/shapes/{p}/0.pt" for p in ROWS]
    assert list(stages[FUSION].reads) == checkpoints
    assert "results/small" in stages["report"].reads
    Path(checkpoints[0]).write_text("another training")
    assert {"evaluate@shapes-scan_t2i_avg-0", FUSION} < stale()


# Seasons beside each other ------------------------------------------------------------


def write_other(datasets_of_it: dict) -> int:
    other = Path("seasons/other/season.yaml")
    other.parent.mkdir(exist_ok=True)
    other.write_text(
        yaml.safe_dump(SEASON | {"datasets": datasets_of_it, "presets": ["vse"]})
    )
    return main(["season", "other"])


def test_seasons_share_a_dataset_and_agree_about_it(repository, capsys):
    assert write_other(SEASON["datasets"]) == 0
    assert stale() == set()
    edited = SEASON["datasets"]["shapes"] | {"options": {"train": 9}}
    assert write_other({"shapes": edited}) == 2
    assert "season small" in capsys.readouterr().err
    assert write_other({"mine": edited | {"reader": "shapes"}}) == 0
    shared = read_yaml(SEASONS / "shared/params.yaml")
    assert list(shared["datasets"]) == ["mine", "shapes"]
    assert write_other({"people": {"image": {"network": "drawn_cnn"}}}) == 0
    assert list(read_yaml(SEASONS / "shared/params.yaml")["datasets"]) == [
        "people",
        "shapes",
    ]


def test_a_season_that_was_resolved_before_needs_no_torch(repository):
    code = "import sys; from benchmark.__main__ import main; assert main(['season', 'small']) == 0"
    command = [sys.executable, "-c", f"{code}; assert 'torch' not in sys.modules"]
    subprocess.run(command, check=True)


def test_what_tune_and_score_added_is_an_input_of_the_report(repository):
    (SEASONS / "small/tuning.csv").touch()
    (SEASONS / "small/external.yaml").write_text("{}")
    deps = pipeline.all_stages(read_params("small"))["report"].reads
    assert {"seasons/small/tuning.csv", "seasons/small/external.yaml"} <= set(deps)
    with refused(do="rematch season small"):
        pipeline.write_digests(resolved("small"))


def test_the_digest_of_a_cell_tells_its_options_and_not_where_its_files_lie():
    cell = read_params("demo").cells["shapes-scan_t2i_avg-0"]
    same = cell.model_copy(update={"folder": "data/cells/elsewhere", "keeps": ()})
    assert pipeline.cell_digest(same) == pipeline.cell_digest(cell)
    changes = {
        "options": {"epochs": 9},
        "method": "vse",
        "images": "data/features/x",
        "seed": 7,
    }
    changes |= {
        "numerics": "intel",
        "threads": 2,
        "precision": "tf32",
        "validation_images": 5,
    }
    for name, value in changes.items():
        changed = cell.model_copy(update={name: value})
        assert pipeline.cell_digest(changed) != pipeline.cell_digest(cell), name


def test_digests_depend_on_what_own_methods_import(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_text(Path("own/mine.py"), "import layers\nimport torch\n")
    write_text(Path("own/layers.py"), "import sums\n")
    write_text(Path("own/sums.py"), "")
    write_text(Path("own/other.py"), "")
    params = SimpleNamespace(season="s", methods={"mine": "own/mine.py"})
    code = [path for path in pipeline._digests(params).reads if path.endswith(".py")]
    assert code == ["own/mine.py", "own/layers.py", "own/sums.py"]


@pytest.mark.parametrize("method", ["mine.py", "own/mine.py", "own/my.v2.py"])
def test_a_report_depends_on_the_presets_beside_a_method(method, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    beside = Path(method).with_suffix(".yaml")
    beside.parent.mkdir(exist_ok=True)
    for path in (Path(method), beside):
        path.write_text("")
    params = SimpleNamespace(
        season="s", cells={"k": SimpleNamespace(method=method)}, datasets=[]
    )
    assert str(beside) in pipeline._report(params).reads
