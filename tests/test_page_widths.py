"""The committed reports as GitHub shows them: words that are seen, and the width of every table.

Widths are measured in headless Chromium, with GitHub's fonts and widths; without it that test is
left out.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parent.parent / "reports"
WIDTH = 948  # pixels of a page on GitHub
FIRST_PAGE, CLAIMS_PAGE = 700, 2500  # most words that are seen
MOST_COLUMNS = 8
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
STYLE = f"""
body {{ font: 16px/1.5 "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; width: {WIDTH}px }}
table {{ border-collapse: collapse; display: block; width: max-content; max-width: 100%;
  overflow: auto }}
th, td {{ padding: 6px 13px; border: 1px solid }}
code {{ padding: .2em .4em; font: 85% "Liberation Mono", monospace; white-space: break-spaces }}
"""
MEASURE = """
const wide = [...document.querySelectorAll("table")]
  .filter(table => table.scrollWidth > table.clientWidth)
  .map(table => [table.closest("section").id, table.scrollWidth, table.rows[0].innerText]);
document.body.innerHTML = "";
document.body.innerText = JSON.stringify(wide);
"""

pytestmark = pytest.mark.skipif(
    not (ROOT / "README.md").is_file(), reason="no ledger is committed: python -m benchmark ledger"
)


def pages() -> list[Path]:
    return [path for path in sorted(ROOT.rglob("*.md")) if "local" not in path.parts]


def html(path: Path) -> str:
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(path.read_text())


def seen_words(path: Path) -> int:
    """Words that a reader sees before unfolding anything."""
    text = re.sub(r"<details>.*?</details>", "", html(path), flags=re.DOTALL)
    return len(re.sub(r"<[^>]*>|<!--.*?-->", " ", text).split())


def test_first_pages_and_claims_are_short():
    counts = {str(path.relative_to(ROOT)): seen_words(path) for path in pages()}
    first = {name: n for name, n in counts.items() if re.fullmatch(r"\w+/README\.md", name)}
    claims = {name: n for name, n in counts.items() if name.endswith("claims.md")}
    assert len(first) >= 3 and len(claims) == len(first)
    assert {name: n for name, n in first.items() if not 100 < n < FIRST_PAGE} == {}
    assert {name: n for name, n in claims.items() if not 100 < n < CLAIMS_PAGE} == {}


def test_tables_of_first_pages_and_claims_have_few_columns():
    for path in [*ROOT.glob("*/README.md"), *ROOT.glob("*/claims.md"), ROOT / "README.md"]:
        for head in re.findall(r"<thead>.*?</thead>", html(path), flags=re.DOTALL):
            assert head.count("</th>") <= MOST_COLUMNS, (path, head)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine: apt-get install chromium")
def test_no_table_is_wider_than_a_page(tmp_path):
    probe = f'<section id="probe"><table><tr><td style="min-width:{WIDTH}px">wide</table></section>'
    sections = [
        f'<section id="{path.relative_to(ROOT)}">'
        f"{html(path).replace('<details>', '<details open>')}</section>"
        for path in pages()
    ]
    body = f"<style>{STYLE}</style>{probe}{''.join(sections)}<script>{MEASURE}</script>"
    page = tmp_path / "pages.html"
    page.write_text(f'<!doctype html><meta charset="utf-8"><body>{body}')
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,900"]
    done = subprocess.run(
        [*command, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    too_wide = json.loads(re.search(r"<body>(.*)</body>", done.stdout, flags=re.DOTALL).group(1))
    assert too_wide[0][0] == "probe"  # or the test could not fail
    assert too_wide[1:] == []
