"""The options of `score`, and its advice."""

from pathlib import Path

import pandas as pd
import pytest
from external_files import IMAGE_IDS, embeddings, save_pair, score

from benchmark.__main__ import main

pytestmark = pytest.mark.usefixtures("external_season")


def test_one_kind_of_file_and_a_name_of_its_own_are_needed(capsys):
    pair = ("--images", "a.npy", "--captions", "b.npy")
    for words, message in (
        ((), "--images with --captions, or --matrix, or --ranks, found none of them"),
        (("--images", "a.npy"), "found 1 of them"),
        (("--matrix", "a.npy", "--ranks", "r.csv"), "found several kinds"),
        (
            (*pair, "--depth", "5"),
            "--depth: expected --ranks or --matrix, found --images",
        ),
        (
            (*pair, "--first-rank", "1"),
            "--first-rank: expected --ranks, found --images",
        ),
        (
            (*pair, "--not-found", "0"),
            "--not-found: expected --ranks, found --images",
        ),
        (
            ("--ranks", "r.csv", "--numbers", "bits"),
            "--numbers: expected --images with --captions or --matrix, found --ranks",
        ),
        (("--items", "todo"), "--items: expected a folder alone, found --name, too"),
        (
            ("--seed", "-1", "--ranks", "r.csv"),
            "--name and --seed: seed: expected greater",
        ),
        (("--name", "scan_t2i_avg", "--ranks", "r.csv"), "a name that no preset"),
        (("--name", "../up", "--ranks", "r.csv"), "--name and --seed: preset"),
        (("--name", "claims", "--ranks", "r.csv"), "a name that no preset"),
    ):
        assert score(*words) == 2
        assert message in capsys.readouterr().err
    assert not Path("seasons/try/external.yaml").exists()


def test_advice_is_a_command_that_works(capsys):
    images, captions = embeddings()
    assert score(*save_pair(images[:-1], captions), "--season", "try") == 2
    told = capsys.readouterr().err
    command_line = "rematch score --dataset open --season try --items FOLDER"
    assert command_line in told
    words = command_line.replace("FOLDER", "todo").split()[1:]
    assert main(words) == 0
    assert pd.read_csv("todo/images.csv")["image_id"].tolist() == IMAGE_IDS


def test_a_reader_that_is_no_dataset_needs_annotations(capsys):
    assert main(["score", "--dataset", "mscoco", "--items", "todo"]) == 2
    told = capsys.readouterr().err
    assert (
        "dataset 'mscoco': expected one of" in told and "add --annotations FILE" in told
    )
    assert main(["score", "--dataset", "opne", "--items", "todo"]) == 2
    assert "--annotations" not in capsys.readouterr().err
