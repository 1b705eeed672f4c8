"""README and docs: links lead somewhere, pages are up to date, commands exist as they are printed.

That the README's own commands run is in test_first_hour.py."""

import argparse
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from dvc.cli import parse_args

from benchmark.__main__ import _module

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "examples/README.md",
]
BASH = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]


def commands(text: str) -> list[list[str]]:
    """The lines of all bash blocks as words, without comments."""
    lines = [line for block in BASH.findall(text) for line in block.splitlines()]
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def anchors(text: str) -> set[str]:
    """The names that GitHub gives to headings."""
    heads = re.findall(r"^#+ (.*)$", CODE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name):
    text, folder = text_of(name), (ROOT / name).parent
    for link in LINK.findall(CODE.sub("", text)):
        path, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (folder / path).resolve() if path else ROOT / name
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


def test_every_page_is_in_the_index_and_the_navigation():
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    index, navigation, readme = (text_of(x) for x in ("docs/index.md", "mkdocs.yml", "README.md"))
    assert {page for page in pages if f"({page})" not in index} == set()
    assert {page for page in pages if f"- {page}\n" not in navigation} == set()
    assert {page for page in pages if f"docs/{page}" not in readme} == set()


@pytest.mark.parametrize("name", NAMES)
def test_commands_exist_as_they_are_printed(name):
    """Each verb's own parser takes the arguments."""
    for words in commands(text_of(name)):
        if words[0] == "rematch" or words[:3] == ["python", "-m", "benchmark"]:
            verb, *arguments = words[1:] if words[0] == "rematch" else words[3:]
            parser = argparse.ArgumentParser(prog=verb)
            import_module(_module(verb)).configure(parser)
            parser.parse_args(arguments)
        elif words[0] == "dvc":
            parse_args(words[1:])
        elif words[0] == "make":
            assert f"\n{words[1]}:" in text_of("Makefile")


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="the extra docs is not installed")
def test_the_pages_are_built(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path / "site")]
    settings = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site/season-file/index.html").is_file()
