"""The names of a season's cells, without what they take."""

import subprocess
import sys

import pytest

from benchmark.core.errors import UserError
from benchmark.season.declaring import declare
from benchmark.season.parameter_files import read_season, season_names
from benchmark.season.parameters import Brought
from seasons import FUSION, SCAN, TWO_BRANCH, committed, season, with_dataset

NO_IMPORTS = """
import sys

from benchmark.season.declaring import declare
from benchmark.season.parameter_files import read_season

season = declare("flickr8k", read_season("flickr8k"))
assert len(season.everything) > 100 and season.methods
loaded = {"torch", "pandas"} & sys.modules.keys()
assert not loaded, loaded
"""


@pytest.mark.parametrize("name", season_names())
def test_a_season_declares_the_cells_that_it_resolves_to(name):
    declared, params = declare(name, read_season(name)), committed(name)
    assert list(declared.cells) == list(params.cells)
    assert list(declared.fusions) == list(params.fusions)
    for key, cell in declared.everything.items():
        resolved = params.everything[key]
        assert cell.model_dump() == resolved.model_dump(include=set(dict(cell)))
    for field in set(dict(declared)) - {"cells", "fusions"}:
        assert getattr(declared, field) == getattr(params, field), field


def test_a_fusion_names_the_folders_of_its_members():
    declared = declare("try", season(presets=[FUSION]))
    fusion = declared.fusions[f"drawn-{FUSION}-0"]
    assert [folder.split("/")[-2] for folder in fusion.members] == [
        SCAN,
        "scan_i2t_lse",
    ]


def test_a_correction_is_run_where_its_preset_is():
    both = season(presets=[SCAN, TWO_BRANCH], corrections={"nnn": [SCAN]}, seeds=[0])
    with_some = with_dataset(both, "drawn", presets=[TWO_BRANCH])
    declared = declare("try", with_dataset(with_some, "folder", presets=[SCAN]))
    assert list(declared.cells) == [f"drawn-{TWO_BRANCH}-0", f"folder-{SCAN}-0"]
    assert list(declared.fusions) == [f"folder-{SCAN}_nnn-0"]


def test_external_rows_are_no_cells():
    row = Brought(dataset="drawn", preset="elsewhere", seed=0)
    declared = declare("try", season(), brought={row.key: row})
    assert declared.brought == {row.key: row}
    assert row.key not in declared.everything


@pytest.mark.parametrize(
    "changes, found",
    [
        ({"presets": ["scan_t2i_avgg"]}, "did you mean scan_t2i_avg?"),
        ({"options": {"scann": {"epochs": 1}}}, "did you mean scan?"),
        ({"presets": [FUSION], "seeds_of": {"scan_i2t_lse": [9]}}, "no such cell"),
    ],
)
def test_a_name_that_fits_nothing_is_refused(changes, found):
    with pytest.raises(UserError, match=found):
        declare("try", season(**changes))


@pytest.mark.parametrize("pattern", ["scan_t2i_avgg", "!scan_t2i_avgg", "scan_t3*"])
@pytest.mark.parametrize("field", ["presets", "fold_presets"])
def test_a_pattern_that_fits_no_preset_is_refused(pattern, field):
    settings = {field: [pattern]}
    if field == "fold_presets":
        settings["folds"] = 3
    with pytest.raises(UserError, match=f"datasets.drawn.{field}") as error:
        declare("try", with_dataset(season(presets=[FUSION]), "drawn", **settings))
    assert pattern.removeprefix("!") in error.value.found


def test_of_several_seeds_for_a_preset_the_last_ones_count():
    seeds_of = {"scan": [0, 3], "scan_*": [5], TWO_BRANCH: [1]}
    declared = declare("try", season(presets=[SCAN, TWO_BRANCH], seeds_of=seeds_of))
    seeds = {(cell.preset, cell.seed) for cell in declared.cells.values()}
    assert seeds == {(SCAN, 5), (TWO_BRANCH, 1)}


def test_members_have_to_be_run_where_their_fusion_is():
    some = with_dataset(season(presets=[FUSION, TWO_BRANCH]), "drawn", presets=[FUSION])
    with pytest.raises(UserError, match="which it needs, on drawn"):
        declare("try", some)


def test_no_method_file_is_imported():
    subprocess.run([sys.executable, "-c", NO_IMPORTS], check=True)
