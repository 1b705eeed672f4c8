"""Which file of a folder the name of an absent image means."""

import pytest

from benchmark.readers import folder_files


def place(raw, *names: str) -> None:
    for name in names:
        (raw / name).parent.mkdir(parents=True, exist_ok=True)
        (raw / name).write_bytes(b"")


def test_hidden_files_and_folders_are_none(tmp_path):
    place(tmp_path, "b/c.png", "a.txt", ".git/d.png", "b/.e.png")
    assert folder_files.below(tmp_path) == ["a.txt", "b/c.png"]
    assert folder_files.ending_in(tmp_path, (".png",)) == ["b/c.png"]


@pytest.mark.parametrize(
    ("files", "names", "meant"),
    [
        (["A.JPG"], ["a.jpg"], {"a.jpg": "A.JPG"}),
        (["my dog.jpg"], ["my%20dog.jpg"], {"my%20dog.jpg": "my dog.jpg"}),
        (["in/a.jpg"], ["a.jpg"], {"a.jpg": "in/a.jpg"}),
        (["in/a.jpg", "on/a.jpg"], ["a.jpg"], {}),
        (["in/a.jpg"], ["a.jpg", "b.jpg"], {}),
        (["in/a.jpg", "b.jpg"], ["a.jpg", "b.jpg"], {}),
        (["a.jpg"], ["a.jpg"], {}),
        (["A.jpg", "a.JPG"], ["a.jpg"], {}),
        (["a.jpg"], ["a.jpg", "A.jpg"], {}),
    ],
)
def test_a_name_means_the_only_file_that_fits(tmp_path, files, names, meant):
    place(tmp_path, *files)
    assert folder_files.meant(tmp_path, names) == meant
