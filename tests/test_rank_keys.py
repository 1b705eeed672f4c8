"""Names of ranks in files: spelled and read in one place."""

import io
import zipfile
from pathlib import Path

import pytest

from benchmark.data.rank_keys import I2T, OWN_KEYS, RankKey
from benchmark.data.results import ARCHIVES, RANKS, RESULTS, Scores, scores_of

ROOT = Path(__file__).parent.parent
NAMES = {
    "i2t": I2T,
    "t2i_fold": RankKey("t2i", is_of_folds=True),
    "t2i@crowd": RankKey("t2i", "crowd"),
    "i2t@a_fold": RankKey("i2t", "a_fold"),
    "s2s": RankKey("s2s"),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_key_is_spelled_as_it_is_read(name):
    assert RankKey.read(name) == NAMES[name] and NAMES[name].name == name


def test_every_key_of_own_has_a_name_of_its_own():
    names = [key.name for key in OWN_KEYS]
    assert len(set(names)) == len(names)
    assert [RankKey.read(name) for name in names] == list(OWN_KEYS)
    assert names == [key.column for key in OWN_KEYS]


def test_the_column_of_a_layer_is_its_direction():
    assert RankKey("t2i", "crowd").column == "t2i"


def test_all_ranks_that_git_keeps_are_read():
    others = {"matched", "unmatched", "score_range", "overlap_replicates"}
    for archive in sorted((ROOT / RESULTS).glob(f"*/*/{ARCHIVES[RANKS]}")):
        with zipfile.ZipFile(archive) as file:
            npz = file.read(file.namelist()[-1])
        arrays = zipfile.ZipFile(io.BytesIO(npz)).namelist()
        names = {Path(array).stem for array in arrays} - others
        lists = {name for name in names if not name.endswith("_counts")}
        scores: Scores = scores_of(npz)
        assert {key.name for key in scores.ranks} == {
            name.removesuffix("_best") for name in lists
        }
