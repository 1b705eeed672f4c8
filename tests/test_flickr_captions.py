"""Caption files and lists of Flickr8k and Flickr30k."""

import pytest
from refusals import refused

from benchmark.readers import flickr_captions
from benchmark.readers.karpathy import Entry


def test_lines_of_captions_are_read_and_bad_ones_refused(tmp_path):
    path = tmp_path / "a.token"
    path.write_text("1.jpg#0\tA dog\n1.jpg#1\tA\tcat\n")
    captions = flickr_captions.captions(path, "a.token")
    assert captions.to_numpy().tolist() == [
        ["1.jpg#0", "1.jpg", "A dog"],
        ["1.jpg#1", "1.jpg", "A\tcat"],
    ]
    path.write_text("1.jpg#0\tA dog\n1.jpg\tA cat\n")
    with refused("a.token:2"):
        flickr_captions.captions(path, "a.token")


def test_the_table_with_its_one_torn_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        "image_name| comment_number| comment\n1.jpg| 0| A dog\n1.jpg| 1   A cat\n"
    )
    captions, torn = flickr_captions.table_captions(path)
    assert torn == 1 and captions["text"].tolist() == ["A dog", "A cat"]
    assert captions["caption_id"].tolist() == ["1.jpg#0", "1.jpg#1"]
    text = "\ufeffimage_name|comment_number|comment\n1.jpg|0|A dog\n"
    path.write_text(text, encoding="utf-8")
    assert flickr_captions.table_captions(path)[0]["text"].tolist() == ["A dog"]
    path.write_text("image_name|comment\n1.jpg|A dog\n")
    with refused("a.csv:1", "comment_number", "image_name, comment"):
        flickr_captions.table_captions(path)


def test_lists_give_every_image_one_split(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1.jpg\n 2.jpg \n")
    lists = {"train": (path, "a.txt")}
    read = flickr_captions.listed(lists, str, "an image")
    assert read == {"1.jpg": "train", "2.jpg": "train"}
    with refused("a.txt:1", "an image", "train"):
        flickr_captions.listed(lists | {"test": (path, "a.txt")}, str, "an image")


@pytest.mark.parametrize(
    ("sentids", "index"), [((5, 3), [5, 3]), ((5, 5), [0, 1]), ((5, None), [0, 1])]
)
def test_the_index_is_the_id_of_a_sentence_where_each_has_one(sentids, index):
    entry = Entry("here", "1.jpg", "train", ["A.", "B."], sentids=sentids)
    captions = flickr_captions.karpathy_captions([entry])
    assert captions.index.tolist() == index
    assert captions["caption_id"].tolist() == ["1.jpg#0", "1.jpg#1"]


def test_tables_without_images_on_disk():
    entry = Entry("here", "1.jpg", "train", ["A."], sentids=(None,))
    captions = flickr_captions.karpathy_captions([entry])
    tables = flickr_captions.tables({"1.jpg": "train"}, captions, ["note"], False)
    assert tables.images.to_numpy().tolist() == [["1", "", "train", "1"]]
    assert tables.captions["image_id"].tolist() == ["1"] and tables.notes == ("note",)


def test_a_caption_number_is_used_once(tmp_path):
    path = tmp_path / "results.csv"
    head = "image_name| comment_number| comment"
    path.write_text(f"{head}\na.jpg| 0| One.\na.jpg| 0| Two.\n")
    with refused("results.csv:3", found="Two."):
        flickr_captions.table_captions(path)
