"""Keys of objects at every depth."""

from benchmark.readers import nested_keys


def gathered(*values: object) -> list[str]:
    keys: dict = {}
    for value in values:
        nested_keys.gather(keys, value)
    return list(map(nested_keys.text_of, keys))


def test_keys_at_every_depth_once():
    record = {
        "image": "a.jpg",
        "facts": {"split": "test", "more": {"lang": "en"}},
        "captions": [{"raw": "A.", "ok": False}, {"raw": "B.", "tags": [1, 2]}],
        "": 0,
    }
    assert gathered(record, record) == [
        *("image", "facts.split", "facts.more.lang", "captions.raw", "captions.ok"),
        *("captions.tags", "without a name"),
    ]


def test_what_is_empty_says_nothing():
    assert (
        gathered({"a": None, "b": "", "c": [], "d": {}, "e": {"f": None}, "g": [{}]})
        == []
    )


def test_a_mapping_of_many_is_named_as_one():
    assert gathered({"splits": {f"{n}.jpg": "test" for n in range(99)}}) == ["splits"]
    assert len(gathered({f"column {n}": n for n in range(99)})) == 99
    for count, named in ((nested_keys.MOST, nested_keys.MOST), (31, 1)):
        assert len(gathered({"a": {str(n): 1 for n in range(count)}})) == named


def test_known_keys_are_left_out_with_all_that_they_hold():
    keys: dict = {}
    record = {"images": [{"id": 1}], "info": {"year": 2014}}
    nested_keys.gather_unread(keys, record, {"images"}, ("top",))
    assert list(keys) == [("top", "info", "year")]


def test_keys_that_no_honest_file_has():
    """Deep nesting ends, and a key is one line that a terminal can show."""
    value: object = 1
    for _ in range(900):
        value = {"a": [value]}
    assert gathered(value) == [".".join("a" * nested_keys.DEEPEST)]
    assert gathered({"a\nb\x1b[2J\ud800": 1, "c" * 999: 1}) == [
        "a b\\x1b[2J\\ud800",
        "c" * nested_keys.LONGEST,
    ]
