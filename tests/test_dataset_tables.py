"""The tables of a dataset."""

from benchmark.report.pages import dataset_tables


def test_what_the_splits_share_is_counted():
    kinds = ("pictures", "near_pictures", "captions", "near_captions")
    leaks = {
        "notes": [],
        "pictures": [["train: a", "test: b"]],
        "near_pictures_total": 7,
    }
    leaks |= {"near_pictures": [], "captions": 3, "near_captions": 4}
    leaks["items"] = dict.fromkeys(kinds, {"train": 1, "val": 0, "test": 2})
    table = dataset_tables.leakage({"title": "Made", "leakage": leaks})
    assert [line[1:] for line in table.rows] == [
        [count, 1, 0, 2] for count in (1, 7, 3, 4)
    ]
    assert len(dataset_tables.leakage({"title": "Made", "leakage": {"notes": []}})) == 0
