"""README and docs: links lead somewhere, pages are up to date and short, commands exist
as they are printed.

That the README's own commands run is in test_first_hour.py."""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
import yaml
from dvc.cli import parse_args
from report_readers import parsed, seen_in_line

from benchmark.__main__ import _module
from benchmark.boards import flags
from benchmark.boards.claims_file import read_seasons
from benchmark.boards.grades import MARKS, Grade
from benchmark.papers.printed_tables import OWN, papers, title_of
from benchmark.stats.claim_kinds import Conclusion

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


def commands_of_bash_blocks(text: str) -> list[list[str]]:
    lines = [line for block in BASH.findall(text) for line in block.splitlines()]
    return [
        words for words in (shlex.split(line, comments=True) for line in lines) if words
    ]


def anchors(text: str) -> set[str]:
    """The names that GitHub gives to headings, and those of the ledger's claims."""
    heads = re.findall(r"^#+ (.*)$", CODE.sub("", text), re.MULTILINE)
    names = {
        re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-")
        for head in heads
    }
    return names | set(re.findall(r'<a id="([^"]+)"', text))


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_first_screen_of_the_readme_is_short():
    # words that a reader sees: no targets of links, no comments of code
    first = parsed(text_of("README.md").split("\n## ")[0])
    lines = [seen_in_line(token) for token in first if token.children]
    for token in (token for token in first if token.type == "fence"):
        lines += token.content.splitlines()
    assert 100 < len(" ".join(line.partition(" #")[0] for line in lines).split()) <= 250
    findings = (
        text_of("README.md").partition("<!-- findings")[2].partition("<!-- end")[0]
    )
    assert 3 <= findings.count("\n- ") <= 5


@pytest.mark.parametrize(
    "path", sorted((ROOT / "reports").glob("*/README.md")), ids=str
)
def test_the_first_screen_of_a_season_is_short(path):
    first = re.split(
        r"^## |^<details>", path.read_text(encoding="utf-8"), flags=re.MULTILINE
    )[0]
    assert 100 < len(first.split()) <= 400
    assert "rsum" in first or "R\\@1" in first
    ranks = re.findall(r"^\| (\d+)\b", first, re.MULTILINE)
    assert 1 <= len(ranks) <= 5 and ranks == sorted(ranks, key=int)
    assert (ranks[0] == "1") == ("scores left out" not in first)


def test_the_newest_entry_of_the_changes_is_of_this_version():
    with (ROOT / "pyproject.toml").open("rb") as file:
        version = tomllib.load(file)["project"]["version"]
    cited = yaml.safe_load(text_of("CITATION.cff"))
    newest = re.search(r"^## (\S+), (\S+)$", text_of("CHANGELOG.md"), re.MULTILINE)
    assert newest.groups() == (version, str(cited["date-released"]))
    assert cited["version"] == version


def test_packages_are_described_as_they_are_tested():
    """Every version of Python that the package names runs in the workflow, which may
    read the repository and no more; the citation is of this version."""
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    head = "Programming Language :: Python :: "
    named = {line.removeprefix(head) for line in project["classifiers"] if head in line}
    workflow = yaml.safe_load(text_of(".github/workflows/ci.yml"))
    (job,) = workflow["jobs"].values()
    assert workflow["permissions"] == {"contents": "read"}
    assert named - {"3 :: Only"} <= {*job["strategy"]["matrix"]["python"]}
    assert project["requires-python"].removeprefix(">=") in named
    citation = yaml.safe_load(text_of("CITATION.cff"))
    preferred = citation["preferred-citation"]
    assert preferred["version"] == citation["version"]
    assert preferred["year"] == citation["date-released"].year
    assert project["keywords"] == citation["keywords"]


def test_a_release_is_published_without_a_kept_secret():
    # the job that may speak for the project to the package index runs nothing of it: it
    # is handed the wheel of another job, whose name has the version of the tag
    text = text_of(".github/workflows/release.yml")
    workflow = yaml.safe_load(text)
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert workflow["permissions"] == {"contents": "read"}
    assert publish["permissions"] == {"id-token": "write"}
    assert "permissions" not in build and publish["needs"] == "build"
    assert publish["environment"] and "secrets." not in text
    assert not any("run" in step for step in publish["steps"])
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    wheel = project["name"].replace("-", "_")
    assert f"dist/{wheel}-${{GITHUB_REF_NAME#v}}-py3" in text


def test_uv_installs_what_pip_does():
    # one variable of the Makefile chooses between them, as the README and the workflow
    # set it: the extra and the locked versions are the same
    chosen = "uv pip install --python .venv"
    assert f"INSTALL='{chosen}'" in text_of("README.md")
    workflow = yaml.safe_load(text_of(".github/workflows/ci.yml"))
    job = workflow["jobs"]["run"]
    (extra,) = job["strategy"]["matrix"]["include"]
    assert extra["install"] == chosen
    assert extra["python"] in job["strategy"]["matrix"]["python"]
    assert "matrix.install" in job["env"]["INSTALL"]
    if shutil.which("make") is None:
        pytest.skip("no make")
    lines = {}
    for install in (chosen, "pip install"):
        command = ["make", "--dry-run", "--always-make", "repro", f"INSTALL={install}"]
        made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        lines[install] = [x for x in made.stdout.splitlines() if "--editable" in x]
    (line,) = lines[chosen]
    assert line.startswith(f"{chosen} --constraint constraints.txt")
    assert line.replace(chosen, "pip install") == lines["pip install"][0]


@pytest.mark.parametrize("name", ("bug", "paper"))
def test_issues_ask_for_what_help_needs(name):
    form = yaml.safe_load(text_of(f".github/ISSUE_TEMPLATE/{name}.yml"))
    assert form["name"] and form["description"]
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids)) == 3
    assert all(field["attributes"]["label"] for field in form["body"])


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
    index, navigation, readme = (
        text_of(x) for x in ("docs/index.md", "mkdocs.yml", "README.md")
    )
    assert {page for page in pages if f"({page})" not in index} == set()
    assert {page for page in pages if f"- {page}\n" not in navigation} == set()
    assert {page for page in pages if f"docs/{page}" not in readme} == set()


@pytest.mark.parametrize("name", NAMES)
def test_commands_exist_as_they_are_printed(name):
    """Each verb's own parser takes the arguments."""
    for words in commands_of_bash_blocks(text_of(name)):
        if words[0] == "rematch" or words[:3] == ["python", "-m", "benchmark"]:
            verb, *arguments = words[1:] if words[0] == "rematch" else words[3:]
            parser = argparse.ArgumentParser(prog=verb)
            import_module(_module(verb)).configure(parser)
            parser.parse_args(arguments)
        elif words[0] == "dvc":
            parse_args(words[1:])
        elif words[0] == "make":
            assert f"\n{words[1]}:" in text_of("Makefile")


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="no extra docs")
def test_the_pages_are_built(tmp_path):
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "-d",
        str(tmp_path / "site"),
    ]
    settings = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=settings, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site/season-file/index.html").is_file()


def test_every_flag_stands_in_the_table_of_flags():
    table = text_of("docs/statistics.md").partition("## Flags")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()
    ]
    told = {row[0]: row for row in rows[2:] if len(row) == 5 and len(row[0]) == 1}
    assert {letter: row[1] for letter, row in told.items()} == flags.NAMES
    blocking = {letter: row[4] for letter, row in told.items() if row[3]}
    assert blocking == flags.BLOCKING
    assert list(told) == list(flags.NAMES)
    assert list(told)[: len(blocking)] == list(blocking)  # they come first


def test_every_mark_of_the_ledger_is_explained():
    table = (
        text_of("docs/statistics.md").partition("## Grades")[2].partition("\n## ")[0]
    )
    told = re.findall(r"^\| (\S) \| (.+?) \| .{10,} \|$", table, re.MULTILINE)
    assert told == [(MARKS[grade], grade) for grade in Grade if grade in MARKS]


def test_what_stands_beside_the_instance_loss_is_what_a_season_found():
    claims = papers()["instance_loss"].claims
    (qualified,) = (claim for claim in claims if claim.but)
    assert qualified.but == "VSE's loss beats both here"
    (season,) = read_seasons(ROOT / "reports", "flickr8k")
    beaten = set()
    for finding in season.datasets[0].claims:
        if finding.paper == OWN and finding.conclusion == Conclusion.HOLDS:
            (part,) = finding.parts
            if part.first == "Crossed: dual-path's CNNs, VSE's loss":
                beaten.add(part.second)
    sides = qualified.parts[0].presets
    assert beaten == {title_of(preset) for preset in sides}


def test_the_example_of_an_undecided_claim_is_one():
    # that to which the README links, beside the page that explains how to read it
    row = next(
        line for line in text_of("README.md").splitlines() if "undecided.md" in line
    )
    (claim,) = re.findall(r"reports/README\.md#([\w-]+)", row)
    told = text_of("reports/README.md").partition(f'<a id="{claim}"></a>\n')[2]
    assert re.match(r"\*\*(.+?)\*\* Undecided", told)
    assert "would decide it" in told.partition("</details>")[0]


def test_the_lessons_are_named_on_the_first_pages():
    lessons = [path.name for path in (ROOT / "examples/lessons").glob("*.ipynb")]
    assert len(lessons) == 5
    for page in ("README.md", "docs/index.md"):
        assert {name for name in lessons if name not in text_of(page)} == set()


def test_what_is_said_of_trials_is_what_their_files_say():
    told = (
        text_of("docs/statistics.md").partition("## Settings")[2].partition("\n## ")[0]
    )
    files = {path.parent.name: path for path in ROOT.glob("seasons/*/tuning.csv")}
    assert set(re.findall(r"^- `(\w+)`", told, re.MULTILINE)) == files.keys()
    assert "Of CycleMatch and VSE the season takes the\n  best trial." in told
    trials = (
        pd.read_csv(files["flickr8k"]).sort_values("val_rsum").groupby("preset").last()
    )
    page = text_of("reports/flickr8k/datasets/flickr8k.md").partition("## Tuning")[2]
    taken = re.findall(r"^\| (.+) \| (.+) \| .* \| .* \| yes \|$", page, re.MULTILINE)
    best = [(title_of(name), trials["options"][name]) for name in ("cyclematch", "vse")]
    assert set(best) <= set(taken)
