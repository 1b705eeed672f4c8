"""Notes of readers on what of their files is not used."""

from benchmark.readers import reader_notes


def test_the_first_names_and_how_many_more():
    assert reader_notes.listed("abc") == "a, b, c"
    assert reader_notes.listed("abcde") == "a, b, c, d, e"
    assert reader_notes.listed("abcdefg") == "a, b, c, d, e and 2 more"
    assert reader_notes.listed([]) == ""
    # of a file whose name is not UTF-8
    assert reader_notes.listed(["gr\udcfcn.png", "gr\u00fcn"]) == (
        "gr\\udcfcn.png, gr\u00fcn"
    )


def test_keys_are_named_once_each():
    keys = [("a",), ("b", "c"), ("a",)]
    assert reader_notes.unread("x.json", keys) == ["x.json: not used: a, b.c."]
    assert reader_notes.unread("x.json", []) == []


def test_captions_left_out_are_counted_with_their_first_images():
    note = reader_notes.left_out("3 captions", map(str, range(27)))
    assert note.startswith("3 captions are left out, of the images 0, 1, ")
    assert note.endswith(", 24 and 2 more.")
