"""Token matrices from files, and what is refused."""

import numpy as np
import pytest
from refusals import refused

from benchmark.features.token_files import are_tokens, read_tokens

MATRICES = [np.full((length, 3), length, np.float32) for length in (2, 1, 4)]
GIVEN = {"tokens": np.concatenate(MATRICES), "lengths": [2, 1, 4]}


def test_the_tokens_of_each_item_are_read_with_their_ids(tmp_path):
    np.savez(tmp_path / "x.npz", **GIVEN, image_id=["a", "b", "c"])
    (tmp_path / "x_ids.txt").write_text("a\nb\nc\n")
    stored = read_tokens(tmp_path / "x.npz")
    for found, matrix in zip(stored.matrices, MATRICES, strict=True):
        assert np.array_equal(found, matrix)
    assert stored.rows.values.tolist() == [[2.0] * 3, [1.0] * 3, [4.0] * 3]
    assert stored.rows.ids == dict.fromkeys(("image_id", "x_ids.txt"), ["a", "b", "c"])


def test_other_files_are_no_token_files(tmp_path):
    np.savez(tmp_path / "x.npz", **GIVEN)
    np.savez(tmp_path / "y.npz", tokens=GIVEN["tokens"])
    np.save(tmp_path / "z.npy", GIVEN["tokens"])
    named = [tmp_path / name for name in ("x.npz", "y.npz", "z.npy", "none.npz")]
    assert [are_tokens(path) for path in named] == [True, False, False, False]


@pytest.mark.parametrize(
    ("change", "where", "found"),
    [
        ({"lengths": [2, 1, 3]}, "lengths", "1 or more, 6 in all"),
        ({"lengths": [3, 0, 4]}, "lengths", "0 or more, 7 in all"),
        ({"lengths": [2.0, 1.0, 4.0]}, "lengths", "float64 (3,)"),
        ({"lengths": np.zeros(0, int)}, "lengths", "int64 (0,)"),
        ({"tokens": np.ones((3, 7, 2))}, "tokens", "(3, 7, 2)"),
        ({"tokens": np.ones((7, 3), int)}, "tokens", "int64"),
        ({"tokens": np.full((7, 3), np.inf)}, "", "item 0 (3 such"),
        ({"masks": np.ones((3, 4))}, "", "'masks'"),
        ({"image_id": ["a", "b"]}, "", "'image_id'"),
    ],
)
def test_what_is_no_token_matrix_is_refused(tmp_path, change, where, found):
    path = tmp_path / "x.npz"
    np.savez(path, **GIVEN | change)
    with refused(f"{path}: {where}" if where else path, found=found):
        read_tokens(path)
