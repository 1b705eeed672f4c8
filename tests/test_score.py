"""The options of `score`, and its advice."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from external_files import IMAGE_IDS, embeddings, refused_score, save_pair
from refusals import check, refusal

from benchmark.__main__ import main
from benchmark.commands import score as command

pytestmark = pytest.mark.usefixtures("external_season")


def test_one_kind_of_file_and_a_name_of_its_own_are_needed():
    pair = ("--images", "a.npy", "--captions", "b.npy")
    ranks = ("--ranks", "r.csv")
    for words, fields in (
        ((), ("score", "--images", "none of them")),
        (("--images", "a.npy"), ("score", "--captions", "--images alone")),
        (("--matrix", "a.npy", *ranks), ("score", "--matrix", "several kinds")),
        ((*pair, "--depth", "5"), ("--depth", "--ranks or --matrix", "--images")),
        ((*pair, "--first-rank", "1"), ("--first-rank", "--ranks", "--images")),
        ((*pair, "--not-found", "0"), ("--not-found", "--ranks", "--images")),
        ((*ranks, "--numbers", "bits"), ("--numbers", "--matrix", "--ranks")),
        (("--items", "todo"), ("--items", "alone", "--name, too")),
        (("--seed", "-1", *ranks), ("--seed: seed", "greater")),
        (("--name", "scan_t2i_avg", *ranks), ("--name", "", "'scan_t2i_avg'")),
        (("--name", "../up", *ranks), ("--name and --seed: preset",)),
        (("--name", "claims", *ranks), ("--name", "", "'claims'")),
    ):
        check(refused_score(*words), *fields)
    assert not Path("seasons/try/external.yaml").exists()


def test_advice_is_a_command_that_works():
    images, captions = embeddings()
    error = refused_score(*save_pair(images[:-1], captions), "--season", "try")
    command_line = "rematch score --dataset open --season try --items FOLDER"
    assert command_line in error.do
    words = command_line.replace("FOLDER", "todo").split()[1:]
    assert main(words) == 0
    assert pd.read_csv("todo/images.csv")["image_id"].tolist() == IMAGE_IDS


def test_a_reader_that_is_no_dataset_needs_annotations():
    error = refusal(command, "--dataset", "mscoco", "--items", "todo")
    check(error, "dataset 'mscoco'", "one of", do="--annotations FILE")
    error = refusal(command, "--dataset", "opne", "--items", "todo")
    assert "--annotations" not in error.do


def test_a_dataset_that_is_not_prepared_may_be_scored_by_its_annotations():
    shutil.rmtree("data/prepared/open")
    check(refused_score("--items", "todo"), "open", do="--annotations FILE")


@pytest.mark.parametrize("seed", [-1, 2**31])
def test_seeds_are_those_that_a_season_may_have(seed):
    words = ("--annotations", "c.csv", "--matrix", "a.npy", "--seed", str(seed))
    Path("c.csv").write_text("image,caption\na.png,A.\nb.png,B.\n")
    error = refusal(command, "--dataset", "folder", *words)
    check(error, "--seed", "from 0", seed)


@pytest.mark.parametrize(
    "words",
    [
        ("--correct", "nnn"),
        ("--depth", "3"),
        ("--first-rank", "0"),
        ("--seed", "1"),
        ("--json",),
    ],
)
def test_no_option_beside_items_is_ignored(words):
    error = refusal(command, "--dataset", "open", "--items", "todo", *words)
    check(error, "--items", "alone", "too")
    assert not Path("todo").exists()
