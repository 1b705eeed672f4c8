"""README and docs: links lead somewhere, pages are up to date, commands exist as they are printed.

That the README's own commands run is in test_first_hour.py."""

import argparse
import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from documents import DOCUMENTS, ROOT, anchors, blocks, commands, links, section
from dvc.cli import parse_args

from benchmark.__main__ import COMMANDS, _module
from benchmark.commands import init
from benchmark.commands.init import Counted
from benchmark.commands.season_reference import comments, reference
from benchmark.core.errors import checked
from benchmark.season.parameters import ImageEncoder
from benchmark.season.season_files import Season

FOLD = 46  # lines of a screen
OF_SHELLS = (".", "pip", "ray", "source")  # commands that are not this project's
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name):
    text, folder = text_of(name), (ROOT / name).parent
    for link in links(text):
        path, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (folder / path).resolve() if path else ROOT / name
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


def test_links_are_found():
    assert "docs/protocol.md" in links(text_of("README.md"))
    assert links("a [b](c.md) `[d](e)`\n```yaml\n[f](g)\n```\n") == ["c.md"]
    assert "licence-how-to-cite-help" in anchors(text_of("README.md"))


def test_every_page_is_in_the_index_and_the_navigation():
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    index, navigation, readme = (text_of(x) for x in ("docs/index.md", "mkdocs.yml", "README.md"))
    assert {page for page in pages if f"({page})" not in index} == set()
    assert {page for page in pages if f"- {page}\n" not in navigation} == set()
    assert {page for page in pages if f"docs/{page}" not in readme} == set()


def test_the_reference_of_season_files_is_made_from_the_code():
    command = "python -m benchmark season --reference > docs/season-file.md"
    assert text_of("docs/season-file.md") == reference(), command
    text = reference()
    assert all(f"| `{key}` |" in text for key in Season.model_fields)
    assert comments(ImageEncoder)["input_size"] == "pixels, both sides"
    assert comments(ImageEncoder)["features"].startswith("file or folder in the raw folder")


@pytest.mark.parametrize("name", NAMES)
def test_commands_exist_as_they_are_printed(name, monkeypatch):
    for words in commands(text_of(name)):
        if words[:3] == ["python", "-m", "benchmark"]:
            check_verb(words[3], words[4:])
        elif words[0] == "dvc":
            parse_args(words[1:])
        elif words[0] == "make":
            assert f"\n{words[1]}:" in text_of("Makefile")
        elif words[:2] != ["python", "-m"]:
            assert words[0] in OF_SHELLS, words


def check_verb(verb: str, arguments: list[str]) -> None:
    """The verb's own parser takes the arguments; it exits with what is wrong where it does not."""
    parser = argparse.ArgumentParser(prog=verb)
    import_module(_module(verb)).configure(parser)
    parser.parse_args(arguments)


def test_a_wrong_command_is_found():
    with pytest.raises(SystemExit):
        check_verb("play", ["--nothing"])
    with pytest.raises(ModuleNotFoundError):
        check_verb("nothing", [])


def test_the_readme_names_every_command():
    text = text_of("README.md") + "".join(text_of(name) for name in NAMES if "docs/" in name)
    unnamed = [verb for verb in COMMANDS if f"benchmark {verb}" not in text]
    assert unnamed == ["code"]  # DVC plays it


def test_what_a_newcomer_needs_is_on_the_first_screen():
    screen = "\n".join(text_of("README.md").splitlines()[:FOLD])
    needed = ("make repro", "make test", "reports/papers.png", "reports/demo/README.md")
    needed += ("#your-pictures", "#your-method", "#your-embeddings", "#the-papers-season")
    needed += ("#limits", "CITATION.cff", "Apache-2.0", "docs/faq.md")
    assert [each for each in needed if each not in screen] == []


def test_the_season_of_the_readme_is_one():
    """Its lines, put into the file that `init` writes as an editor does it: the presets below
    `presets:`, the rest at the end."""
    of_list, at_end = blocks(section(text_of("README.md"), "Your method"), "yaml")
    counted = Counted(images=160, captions=800, has_splits=False, val=16, test=100)
    written = init.season_text("pets", Path("pets"), None, counted)
    head, tail = written.split("presets:\n")
    text = f"{head}presets:\n{of_list}{tail}{at_end}"
    keys = [line.partition(":")[0] for line in text.splitlines() if line[:1].isalpha()]
    assert len(keys) == len(set(keys)), "YAML refuses a key that is there twice"
    before, season = yaml.safe_load(written), yaml.safe_load(text)
    checked(Season, season, "README.md")
    own = ["own_method", "own_method_small"]
    assert season["presets"] == [*own, *before["presets"]]
    assert season["claims"][0]["better"] == own[0] and own[0] in season["methods"]


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="the extra docs is not installed")
def test_the_pages_are_built(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path / "site")]
    settings = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site/season-file/index.html").is_file()
