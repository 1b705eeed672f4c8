"""Markdown of any text."""

from benchmark.report.markdown import escaped, inside, one_line, pipe_table


def test_a_table_aligns_words_to_the_left_and_numbers_to_the_right():
    table = pipe_table(["preset", "R@1"], [["a", "67.9"], ["b", "-"]], "lr")
    assert table.splitlines() == [
        "| preset | R@1 |",
        "|:---|---:|",
        "| a | 67.9 |",
        "| b | - |",
    ]


def test_what_begins_a_list_is_escaped_at_the_start_of_a_line_alone():
    for text, expected in (("1. a", r"1\. a"), ("- a", r"\- a"), ("+ a", r"\+ a")):
        assert escaped(text) == expected
        assert inside(text) == text


def test_underscores_are_escaped_but_for_single_ones_inside_a_word():
    assert escaped("__init__ ___ a_b _c_") == r"\_\_init\_\_ \_\_\_ a_b \_c\_"


def test_a_line_has_neither_breaks_nor_marks_of_direction():
    assert one_line(" a\r\n b\u2028c\u202ed\x1b ") == "a b c d"
    assert one_line("a\u00a0b") == "a\u00a0b"  # a no-break space stays one
