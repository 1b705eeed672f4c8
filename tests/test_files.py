"""Files: read without trust, written whole or not at all."""

import io
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refused

from benchmark.core import files
from benchmark.core.errors import UserError

pytestmark = pytest.mark.usefixtures("empty_folder")
PATH = Path("folder/file")


# Reading ------------------------------------------------------------------------------


def test_no_more_is_read_than_is_allowed():
    assert files.bounded(io.BytesIO(b"abc"), 3, "x") == b"abc"
    with refused("x", "at most 2 bytes", "more"):
        files.bounded(io.BytesIO(b"abc"), 2, "x")
    assert files.allowance(10, 500) == 500
    assert files.allowance(10) == files.ALWAYS + 10 * files.RATIO


def test_one_state_of_a_file_is_read_once(monkeypatch):
    path = Path("file")
    path.write_bytes(b"one")
    first = files.sha256_once(path)
    assert first == files.sha256(path)
    with monkeypatch.context() as patch:
        patch.setattr(files, "sha256", None)
        assert files.sha256_once(path) == first
    path.write_bytes(b"other")
    assert files.sha256_once(path) == files.sha256(path) != first


def test_only_ordinary_files_are_opened():
    Path("folder").mkdir()
    with refused("folder", "an ordinary file", "a folder"), files.opened(PATH.parent):
        pass
    with refused(found="cannot be opened"), files.opened(Path("x" * 300)):
        pass
    with pytest.raises(FileNotFoundError), files.opened(PATH):
        pass


def test_a_missing_file_and_other_bytes_are_told_apart():
    with refused(PATH, "JSON", "nothing"):
        files.read_json(PATH)
    files.write_text(PATH, "{")
    with refused(PATH, "JSON", "something else"):
        files.read_json(PATH)
    files.write_text(PATH, "[1]")
    with refused(PATH, "object", "list"):
        files.read_object(PATH)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', "NaN", "[" * 100_000])
def test_json_that_readers_take_differently_is_refused(text):
    with refused("x", "JSON", do="correct it"):
        files.parse_json(text, "x", "correct it")


BRANCHES = "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 30}]\n" for n in range(1, 9))


@pytest.mark.parametrize(
    "text", ["a: 1\na: 2", "a: " + "[" * 5000, f"a0: &a0 1\n{BRANCHES}"]
)
def test_yaml_that_means_two_things_or_too_much_is_refused(text):
    with pytest.raises(ValueError):
        files.parse_yaml(text)


def test_plain_yaml_is_read():
    assert files.parse_yaml("a: [1, {b: x}]") == {"a": [1, {"b": "x"}]}
    assert files.parse_yaml("") is None


# Writing ------------------------------------------------------------------------------


def test_a_block_that_fails_leaves_what_was_there():
    files.write_text(PATH, "old")
    with pytest.raises(RuntimeError), files.atomic(PATH) as part:
        part.write_text("new")
        raise RuntimeError
    assert PATH.read_text() == "old" and list(PATH.parent.iterdir()) == [PATH]


def test_an_error_names_the_file_and_not_its_part():
    PATH.mkdir(parents=True)
    with pytest.raises(OSError) as caught:
        files.write_text(PATH, "new")
    assert caught.value.filename == str(PATH)
    with pytest.raises(OSError) as caught, files.atomic(PATH):
        raise OSError("as pyarrow does, of no file")
    assert caught.value.filename == str(PATH)


def test_what_is_written_is_on_the_disk_before_it_takes_a_place(monkeypatch):
    done = []
    for name in ("fsync", "replace"):
        call = getattr(os, name)
        monkeypatch.setattr(
            files.os,
            name,
            lambda *given, name=name, call=call: [done.append(name), call(*given)],
        )
    files.write_text(PATH, "new")
    assert done == ["fsync", "replace"] and PATH.read_text() == "new"


def test_unfinished_files_of_processes_that_ended_are_removed():
    ended = subprocess.Popen(["true"])
    ended.wait()
    parts = {}
    for number in (ended.pid, os.getppid()):
        parts[number] = Path(f".mine.{files.HOST}.{number}.part")
        files.write_text(parts[number], "half")
    Path(f".mine.{files.HOST}.{os.getpid()}.part").mkdir()  # of before a restart
    files.write_text(Path("mine"), "whole")
    assert not parts[ended.pid].exists() and parts[os.getppid()].exists()


def test_a_folder_takes_the_place_of_another():
    for text in ("old", "new"):
        with files.replaced(Path("mine")) as folder:
            files.write_text(folder / text, text)
    assert [path.name for path in Path("mine").iterdir()] == ["new"]
    assert [path.name for path in Path().iterdir()] == ["mine"]


def test_kill_between_the_two_renames_loses_nothing():
    aside = Path(".mine.old")
    files.write_text(aside / "card.json", "finished")
    with pytest.raises(RuntimeError), files.replaced(Path("mine")):
        raise RuntimeError
    assert Path("mine/card.json").read_text() == "finished"
    assert not aside.exists()


def test_equal_values_give_equal_bytes():
    arrays = {"b": np.arange(3), "a": np.ones(2)}
    assert files.npz_of(arrays) == files.npz_of(arrays)
    assert files.json_text({"b": 1, "a": "é"}) == '{\n  "a": "é",\n  "b": 1\n}\n'
    members = {"b": b"2", "a": b"1"}
    files.write_archive(PATH, members)
    assert files.read_archive(PATH) == members


def test_tensors_that_were_changed_are_refused():
    files.save_tensors(PATH, {"x": torch.arange(3)})
    assert files.load_tensors(PATH)["x"].tolist() == [0, 1, 2]
    content = bytearray(PATH.read_bytes())
    content[len(content) // 2] ^= 1
    PATH.write_bytes(content)
    with refused(PATH, "checksum"):
        files.load_tensors(PATH)


def test_space_that_a_disk_lacks_is_refused():
    files.require_space(PATH, 1)
    with refused(PATH, "GB", "GB"):
        files.require_space(PATH, 1 << 62)


def test_a_missing_file_is_told_with_the_one_of_nearly_its_name(tmp_path):
    (tmp_path / "theirs.yaml").write_text("a: 1")
    for name, expected in (("their.yaml", "theirs.yaml?"), ("claims.yaml", "")):
        with pytest.raises(UserError) as refusal:
            files.read_yaml(tmp_path / name)
        assert refusal.value.found.startswith("nothing")
        assert ("did you mean" in refusal.value.found) == bool(expected)
        assert expected in refusal.value.found
