"""MATLAB's files: the one variable that is wanted."""

import numpy as np
import pytest
from refusals import refused
from scipy.io import savemat

from benchmark.features import mat_files

VALUES = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_matrix_by_its_name(tmp_path, is_compressed):
    path = tmp_path / "a.mat"
    savemat(path, {"feats": VALUES, "other": 1}, do_compression=is_compressed)
    assert np.array_equal(mat_files.matrix(path, "feats", "(F, N)"), VALUES)


@pytest.mark.parametrize(
    "wrong",
    [{"x": VALUES}, {"feats": VALUES * 1j}, {"feats": "text"}, {"feats": {"x": 1}}],
)
def test_other_variables_are_listed(tmp_path, wrong):
    savemat(tmp_path / "a.mat", wrong)
    with refused(tmp_path / "a.mat", "`feats`", next(iter(wrong))):
        mat_files.matrix(tmp_path / "a.mat", "feats", "(F, N)")


def test_a_bomb_beside_the_matrix_is_refused(tmp_path):
    path = tmp_path / "a.mat"
    zeros = np.zeros((4096, 1024))  # 32 MiB
    savemat(path, {"feats": VALUES, "other": zeros}, do_compression=True)
    with refused(path, "at most", "more"):
        mat_files.matrix(path, "feats", "(F, N)")


def test_a_matrix_that_claims_a_huge_size_is_refused(tmp_path):
    path = tmp_path / "a.mat"
    savemat(path, {"feats": VALUES})
    shape, huge = np.array([[2, 3], [1 << 20, 1 << 20]], "<i4")
    path.write_bytes(path.read_bytes().replace(shape.tobytes(), huge.tobytes()))
    with refused("feats double (1048576, 1048576)", "at most", "more"):
        mat_files.matrix(path, "feats", "(F, N)")


def test_whole_numbers_are_asked_for(tmp_path):
    savemat(tmp_path / "a.mat", {"feats": VALUES.astype(np.int16)})
    with refused(found="int16"):
        mat_files.matrix(tmp_path / "a.mat", "feats", "(F, N)")
    kinds = mat_files.REAL + mat_files.WHOLE
    read = mat_files.matrix(tmp_path / "a.mat", "feats", "(F, N)", kinds)
    assert read.dtype == np.int16
