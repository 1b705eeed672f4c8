"""The page to explore a season: what it is told; and, in a browser, that it opens from
disk."""

import json
import re
import shutil
from pathlib import Path

import pytest
import report_seasons
from refusals import check, refusal

from benchmark.__main__ import main
from benchmark.boards import claim_ledger, claims, claims_file, comparisons
from benchmark.boards.claims_file import VerdictEntry
from benchmark.boards.flags import NAMES, row_flags
from benchmark.boards.season_boards import read_boards
from benchmark.commands import site
from benchmark.report.pages.ledger_pages import anchor

pytest.importorskip("itables", reason="the extra site is not installed")
pytestmark = pytest.mark.slow
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
ARGUMENTS = (
    *(
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
    ),
    *("--window-size=1400,1000", "--host-resolver-rules=MAP * ~NOTFOUND"),  # no network
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The site of a season with a failed cell; its captions are hostile."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("site") / "played"
        report_seasons.enter_played_season(tmp_path_factory, root, patch)
        for seed in (0, 1):
            report_seasons.lose("open", "scan_i2t_lse", seed, report_seasons.HOSTILE)
        assert main(["site", "--public", "public"]) == 0
        assert main(["site"]) == 0
        yield root


def read(path: Path) -> dict:
    """The data of a script."""
    return json.loads(path.read_text().partition("=")[2].rstrip(";\n"))


def test_the_page_is_told_the_numbers_of_the_boards(folder):
    told = read(folder / "public/data/season.js")
    board = next(
        board
        for board in read_boards(report_seasons.season())
        if board.dataset == "open"
    )
    of_board = next(b for b in told["boards"] if b["dataset"] == "open")
    ranked = [row for row in of_board["rows"] if row["status"] == "ok"]
    assert [(row["preset"], row["metrics"]["rsum"]) for row in ranked] == [
        (row.preset, row.mean("rsum")) for row in board.ranked
    ]
    (failed,) = [row for row in of_board["rows"] if row["status"] == "failed"]
    assert of_board["split"] == board.card["split"]
    assert failed["reason"] == report_seasons.HOSTILE and len(of_board["rows"]) == len(
        report_seasons.PRESETS
    )
    verdicts = claims.claim_tests(board)
    of_claims = [claim for claim in told["claims"] if claim["dataset"] == "open"]
    assert [claim["conclusion"] for claim in of_claims] == [
        str(v.conclusion) for v in verdicts
    ]
    assert [claim["on_test_set"] for claim in of_claims] == [
        str(v.on_test_set) for v in verdicts
    ]
    for claim, verdict in zip(of_claims, verdicts, strict=True):
        parts = [
            VerdictEntry.of(part).model_dump(mode="json") for part in verdict.verdicts
        ]
        assert claim["parts"] == parts
    best = ranked[0]["place"]
    assert (best["low"], best["high"]) == pytest.approx(
        comparisons.interval(board, board.ranked[0], "rsum"), rel=1e-5
    )
    assert best["flags"] == {
        NAMES[f.letter]: f.sentence for f in row_flags(board, board.ranked[0])
    }
    counted = [claim["counted"] for claim in of_claims]
    assert counted == [verdict.is_counted for verdict in verdicts] and False in counted
    scores = read(folder / "public/data/plots.js")[f"open/{ranked[0]['preset']}"][
        "scores"
    ]
    assert sum(scores["matched"]) == pytest.approx(1) == sum(scores["unmatched"])
    assert len(scores["edges"]) == len(scores["matched"]) + 1


def test_what_may_not_be_published_stays_here_and_nothing_is_loaded_from_elsewhere(
    folder,
):
    public, own = folder / "public", folder / ".scratch/site/try"
    for name in ("index.html", "site.css", "site.js"):
        text = (public / name).read_text().replace("https://vega.github.io/schema", "")
        text = text.replace("http://www.w3.org/2000/svg", "")  # names, not addresses
        assert "//" not in text.replace("\n//", "")
    assert len(list((own / "images/gated").iterdir())) == report_seasons.IMAGES
    assert not (public / "images/gated").exists()
    assert len(list((public / "images/open").iterdir())) == report_seasons.IMAGES
    quoted = json.dumps(report_seasons.texts_of("gated")[0])
    assert not any(quoted in path.read_text() for path in public.rglob("*.js"))
    assert quoted in (own / "data/items/gated.js").read_text()


def test_only_its_own_folder_is_replaced(folder):
    assert main(["site", "--public", "public"]) == 0
    Path("notes").mkdir()
    Path("notes/mine.txt").write_text("mine")
    for place in ("notes", "notes/mine.txt"):
        error = refusal(site, "--season", "try", "--public", place)
        check(error, where=place, do="folder")
    assert Path("notes/mine.txt").read_text() == "mine"


def test_a_bare_clone_has_what_the_report_tells_and_the_ledger_in_front(
    tmp_path, tmp_path_factory, monkeypatch, capsys
):
    report_seasons.enter_reported_season(
        tmp_path_factory, tmp_path / "reported", monkeypatch
    )
    assert main(["site", "--public", "whole"]) == 0
    for folder in Path("data").iterdir():
        if folder.name != "cards":
            shutil.rmtree(folder)
    assert main(["site", "--all", "--public", "bare"]) == 0
    assert "rematch prepare open, then rematch site again" in capsys.readouterr().out
    whole, bare = (read(Path(of, "data/season.js")) for of in ("whole", "bare/try"))
    assert bare["claims"] == whole["claims"] and len(bare["claims"]) > 1
    for here, there in zip(bare["boards"], whole["boards"], strict=True):
        assert (
            f"rematch fetch {here['dataset']}" in here["lacks"] and not there["lacks"]
        )
        assert here | {"lacks": ""} == there
    plots = Path("data/plots.js")
    assert Path("bare/try", plots).read_bytes() == Path("whole", plots).read_bytes()
    assert (
        not Path("bare/try/images").exists()
        and not Path("bare/try/data/queries").exists()
    )

    front = Path("bare/index.html").read_text()
    for row in claim_ledger.ledger(claims_file.read_seasons(Path("reports"))):
        assert front.count(f'<a id="{anchor(row)}"></a>') == 1
        assert not row.findings or f'<a href="#{anchor(row)}">' in front
    links = re.findall(r'(?:href|src)="([^"#]+)', front)
    assert "try/index.html" in links and "papers.svg" in links
    assert all(link == "data:," or Path("bare", link).is_file() for link in links)


def test_a_module_becomes_a_script():
    script = site.as_script("let x=1,y=2;export{x as default,y};/* MIT */")
    assert (
        script == '(()=>{let x=1,y=2;\nwindow.tables={"default":x,"y":y};})();/* MIT */'
    )


@pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="chromium and its driver are not installed"
)
def test_every_page_opens_from_disk_and_runs_no_text_of_others(folder):
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="selenium is not installed"
    )
    waits = pytest.importorskip("selenium.webdriver.support.wait")
    services = pytest.importorskip("selenium.webdriver.chrome.service")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = services.Service(DRIVER)
    with webdriver.Chrome(options=options, service=service) as browser:
        for page, shown in (
            ("leaderboard/open%2Fretrieval", "table.dataTable"),
            (
                "leaderboard/open%2Fretrieval?find=scan&by=2&order=asc",
                "th.dt-ordering-asc",
            ),
            ("claims/open%2Fretrieval", "table.dataTable"),
            ("plots/open%2Fretrieval", "figure svg"),
            ("cell/open%2Fretrieval/scan_i2t_lse", ".failed"),
            ("queries/open%2Fretrieval/scan_t2i_avg/t2i", "tbody button"),
            (
                "compare/open%2Fretrieval/scan_t2i_avg/two_branch_bidirectional",
                "figure svg",
            ),
        ):
            browser.get("about:blank")
            browser.get(f"{(folder / 'public/index.html').as_uri()}#{page}")
            wait = waits.WebDriverWait(browser, 90)
            wait.until(lambda of: of.find_elements("css selector", shown))  # noqa: B023
            assert not browser.find_elements(
                "css selector", "#page script, #page b, #page i"
            )
            assert browser.get_log("browser") == []
        browser.get("about:blank")
        browser.get(
            f"{(folder / 'public/index.html').as_uri()}#leaderboard/open%2Fretrieval"
        )
        wait.until(lambda of: len(of.find_elements("css selector", "svg.bar")) > 1)
        picked = browser.find_elements("css selector", "input.pick")[:2]
        names = [box.get_attribute("value") for box in picked]
        for box in picked[::-1]:
            box.click()
        wait.until(lambda of: of.current_url.endswith("/".join(["", *names])))
        assert "#compare/" in browser.current_url
