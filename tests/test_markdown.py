"""Text from anywhere as Markdown: it shows as it is, and does nothing."""

import re

import pytest
from report_seasons import HOSTILE

from benchmark.report.markdown import code, escaped, picture, pipe_table


class TestEscaped:
    @pytest.mark.parametrize(
        "text",
        [
            HOSTILE,
            "![x](y)",
            "[a]: http://b",
            "# head",
            "- item",
            "1. item",
            "&lt; &#124;",
            "a\\|b",
            "$x^2$ :dog: @me ~~no~~ _em_",
            "---",
            "www.example.org",
            "<!-- c -->",
        ],
    )
    def test_no_construct_survives(self, text):
        shown = escaped(text)
        bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", shown)
        assert not re.search(r"[\\`*\[\]<>|~$#&@]|:\S|\b_|_\b", bare)
        assert "\n" not in shown
        assert not re.match(r"[-+=]|\d+[.)]", shown)
        assert "www." not in bare

    def test_only_marks_and_line_breaks_change(self):
        assert (
            escaped("A dog, (brown) runs - fast; it's 3 m.")
            == "A dog, (brown) runs - fast; it's 3 m."
        )
        assert re.sub(r"\\(.)", r"\1", escaped("a | b_c <i>\n\td")) == "a | b_c <i> d"

    def test_text_cannot_turn_its_surroundings_or_hold_control_characters(self):
        assert escaped("a\u202eb\x00c\x1b[0m") == "a b c \\[0m"

    def test_a_hostile_caption_keeps_the_table_whole(self):
        lines = pipe_table(["a", "b"], [[escaped(HOSTILE), "1"], ["x", "2"]], "lr").splitlines()
        assert len(lines) == 4
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {3}

    def test_code_and_alt_text_are_held_in(self):
        assert code("a`|b") == "`a  b`"
        assert picture("x](y", "p.png") == "![x\\](y](p.png)"
