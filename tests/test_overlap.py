"""Pictures that two folders share."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from refusals import refused

from benchmark.__main__ import main
from benchmark.commands import overlap
from benchmark.commands.overlap import images_in


def drawn(seed: int) -> Image.Image:
    """A smooth picture of its own."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 255, (6, 6, 3), np.uint8)
    return Image.fromarray(coarse).resize((120, 90), Image.Resampling.BICUBIC)


@pytest.fixture
def folders(tmp_path) -> tuple[Path, Path]:
    """Five pictures each; one is in both, and one is in both in another size."""
    first, second = tmp_path / "a", tmp_path / "b"
    (first / "deep").mkdir(parents=True)
    second.mkdir()
    for seed in range(4):
        drawn(seed).save(first / f"{seed}.png")
    drawn(4).save(first / "deep/4.png")
    drawn(0).save(second / "same.png")
    drawn(4).resize((60, 45)).save(second / "small.jpg", quality=60)
    for seed in range(10, 13):
        drawn(seed).save(second / f"{seed}.png")
    return first, second


def test_equal_and_nearly_equal_pictures_are_found(folders, capsys, tmp_path):
    out = tmp_path / "shared.csv"
    assert main(["overlap", *map(str, folders), "--out", str(out)]) == 0
    pairs = pd.read_csv(out)
    assert pairs["first"].tolist() == ["0.png", "deep/4.png"]
    assert pairs["second"].tolist() == ["same.png", "small.jpg"]
    assert pairs["bits"].isna().tolist() == [True, False]
    assert capsys.readouterr().out.startswith("2 of 5 images")


def test_a_check_exits_with_what_was_found(folders, tmp_path):
    assert main(["overlap", *map(str, folders), "--check"]) == 1
    other = tmp_path / "c"
    other.mkdir()
    drawn(20).save(other / "20.png")
    assert main(["overlap", str(folders[0]), str(other), "--check"]) == 0


def test_a_folder_without_images_is_refused(tmp_path):
    with refused(tmp_path, expected="images"):
        images_in(tmp_path)
    with refused("gone"):
        images_in(tmp_path / "gone")


def test_a_link_out_of_the_folder_is_refused(folders, tmp_path, capsys):
    outside = tmp_path / "outside.png"
    drawn(30).save(outside)
    (folders[0] / "link.png").symlink_to(outside)
    assert main(["overlap", *map(str, folders)]) == 2
    assert "link" in capsys.readouterr().err


def test_a_folder_is_not_compared_with_itself(folders, capsys):
    assert main(["overlap", str(folders[0]), str(folders[0])]) == 2


def test_the_bits_of_hashes_are_64():
    pairs = [overlap.SharedPair("a", "b", None), overlap.SharedPair("a", "c", 8)]
    lines = overlap.shown(pairs, 1, 2).splitlines()
    assert lines[1].endswith("(equal)")
    assert lines[2].endswith("(8 of 64 bits differ)")


def test_each_side_has_its_own_count_of_shared_pictures():
    pairs = [overlap.SharedPair("a", name, None) for name in "bcd"]
    assert overlap.shown(pairs, 5, 7).startswith(
        "1 of 5 images are in the second folder, 3 of 7 in the first: "
        "3 pairs are equal pixel for pixel, 0 nearly\n"
    )


def test_bits_are_whole_numbers_beside_equal_pictures(tmp_path):
    out = tmp_path / "shared.csv"
    pairs = [overlap.SharedPair("a", "b", None), overlap.SharedPair("a", "c", 3)]
    pictures = overlap.Pictures([], [])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlap, "read_pictures", lambda folder: pictures)
        patch.setattr(overlap, "shared_pairs", lambda first, second: pairs)
        assert main(["overlap", "one", "two", "--out", str(out)]) == 0
    assert out.read_text() == "first,second,bits\na,b,\na,c,3\n"
