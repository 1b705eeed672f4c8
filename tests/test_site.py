"""The page to explore a season: what it is told; and, in a browser, that it opens from
disk."""

import csv
import io
import json
import re
import shutil
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import unquote

import pytest
import report_seasons
from refusals import check, refusal

from benchmark.__main__ import main
from benchmark.boards import (
    claim_ledger,
    claims,
    claims_file,
    comparisons,
)
from benchmark.boards.claims_file import VerdictEntry
from benchmark.boards.flags import NAMES, row_flags
from benchmark.boards.grades import FAILING, HOLDING, Grade
from benchmark.boards.season_boards import read_boards
from benchmark.commands import ledger, site
from benchmark.report.pages.ledger_pages import anchor
from benchmark.scoring import METRICS
from benchmark.stats.claim_kinds import FAILED, Conclusion

pytest.importorskip("itables", reason="no extra site")
pytestmark = pytest.mark.slow
COMMITTED = Path(__file__).parent.parent / "reports"
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
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("site") / "played"
        report_seasons.enter_played_season(tmp_path_factory, root, patch)
        for seed in (0, 1):
            report_seasons.lose("open", "scan_i2t_lse", seed, report_seasons.HOSTILE)
        assert main(["site", "--public", "public"]) == 0
        assert main(["site"]) == 0
        yield root


def read_data(path: Path) -> dict:
    return json.loads(path.read_text().partition("=")[2].rstrip(";\n"))


def test_the_page_is_told_the_numbers_of_the_boards(folder):
    told = read_data(folder / "public/data/season.js")
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
        parts = []
        for part in verdict.verdicts:
            parts.append(VerdictEntry.of(part).model_dump(mode="json"))
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
    scores = read_data(folder / "public/data/plots.js")[f"open/{ranked[0]['preset']}"][
        "scores"
    ]
    assert sum(scores["matched"]) == pytest.approx(1) == sum(scores["unmatched"])
    assert len(scores["edges"]) == len(scores["matched"]) + 1
    assert scores["seed"] == board.ranked[0].played[0].record.seed
    assert told["less_is_better"] == [
        name for name, metric in METRICS.items() if metric.less_is_better
    ]
    grades = site.FAILING
    assert told["grades"] == {str(grade): grades[grade] for grade in grades}
    of_preset = {row["preset"]: row for row in of_board["rows"]}
    fused = of_preset[report_seasons.FUSION]
    assert fused["trained_as"] == list(report_seasons.MEMBERS)
    assert of_preset["scan_t2i_avg"]["trained_as"] == []
    only_scores = {"declared.options": {"trains": False}, "declared.start": "a"}
    row = Mock(**({"declared.fuse": None} | only_scores))
    assert site.trained_as(row) == ["a"]
    assert not any(row["corrected"] for row in of_board["rows"])


@pytest.mark.parametrize(
    "title, name",
    [
        ("CycleMatch", ("CycleMatch", "")),
        ("CycleMatch (w/o latent)", ("CycleMatch", "(w/o latent)")),
        ("SCAN t-i LSE + i-t AVG", ("SCAN", "t-i LSE + i-t AVG")),
        ("SCAN i-t AVG, 12 regions", ("SCAN", "i-t AVG, 12 regions")),
        ("Two-branch, nonlinear", ("Two-branch", "nonlinear")),
        ("Crossed: VSE's GRU, instance loss", ("Crossed", "VSE's GRU, instance loss")),
        (", odd", (", odd", "")),
    ],
)
def test_a_name_is_a_method_and_what_sets_the_preset_apart(title, name):
    assert site.short_name(title) == name


def test_a_row_is_told_as_corrected_or_as_fed_what_its_paper_feeds_it(folder):
    boards_of = read_boards(report_seasons.season())
    board = next(board for board in boards_of if board.dataset == "open")
    row = board.row("scan_t2i_avg")

    def told(**changes: object) -> dict:
        outcomes = []
        for outcome in row.outcomes:
            record = outcome.record.model_copy(update=changes)
            outcomes.append(replace(outcome, record=record))
        changed = replace(row, outcomes=outcomes)
        of_changed = replace(board, rows=[changed])
        return site.row_data(of_changed, changed, ["rsum"])

    metrics = row.record.metrics | {"correction": {"how": "nnn"}}
    assert told(metrics=metrics)["corrected"] and not told()["corrected"]
    assert told(departures=[])["features_of_paper"]
    assert not told()["features_of_paper"]  # another image network


@pytest.mark.parametrize(
    "hours, told",
    [
        (12.34, "12.3 hours"),
        (1, "1.0 hours"),
        (0.13, "8 minutes"),
        (0.02, "1 minute"),
        (0.001, "less than a minute"),
        (0, "less than a minute"),
    ],
)
def test_less_than_an_hour_is_told_in_minutes(hours, told):
    assert site.lasting(hours) == told


def test_each_verdict_that_fails_makes_one_grade():
    assert site.FAILING[Grade.NO_EFFECT] == [Conclusion.NO_DIFFERENCE]
    listed = [*site.FAILING[Grade.FAILS], *site.FAILING[Grade.NO_EFFECT]]
    assert sorted(listed) == sorted(FAILED)


def test_the_ledger_leads_into_the_sites_of_the_seasons():
    layered = {"dataset": "open", "task": "retrieval", "layer": "crowd"}
    other = layered | {"layer": "experts"}
    boards = [layered | {"layer": ""}, layered, other]
    links = site.links_into([{"season": "try", "boards": boards}])
    assert (links.front, links.claims) == ("index.html", "index.html#claims")
    layer = site.address_of(layered, "leaderboard")
    assert links.layers("try", "open") == f"try/index.html{layer}"
    assert not links.layers("try", "gated")
    assert not (links.docs or links.records or links.fidelity)


def test_headings_stand_below_that_of_the_page_and_have_the_names_of_github():
    html = site.html_of("# Which claims hold\n\n## Seasons (2)\n")
    assert '<h2 id="which-claims-hold">Which claims hold</h2>' in html
    assert '<h3 id="seasons-2">Seasons (2)</h3>' in html


def test_intervals_stand_beside_levels_and_differences(folder):
    """Of every row by each metric, and of every two rows, positive where the first is
    better: of S, of which less is better, too."""
    told = read_data(folder / "public/data/season.js")
    of_board = next(b for b in told["boards"] if b["dataset"] == "open")
    pairs = read_data(folder / "public/data/pairs/open/retrieval.js")
    boards_of = read_boards(report_seasons.season())
    board = next(board for board in boards_of if board.dataset == "open").retrieval
    metrics = [*of_board["metrics"], "overlap_s"]
    assert pairs["metrics"] == metrics
    assert pairs["presets"] == [row.preset for row in board.ranked]
    known = 0
    for row, data in zip(board.ranked, of_board["rows"], strict=False):
        for metric in metrics:
            ends = comparisons.interval(board, row, metric)
            of_images = comparisons.interval_over_images(board, row, metric)
            if of_images is None:
                assert metric not in data["intervals"]
                continue
            known += 1
            *told_ends, is_of_these_trainings = data["intervals"][metric]
            assert told_ends == pytest.approx(ends or of_images, rel=1e-5)
            assert is_of_these_trainings == (ends is None)
    assert known >= len(board.ranked) * (len(metrics) - 2)  # MedR has none
    both = list(combinations(board.ranked, 2))
    for (first, second), differences in zip(both, pairs["differences"], strict=True):
        for metric, difference in zip(metrics, differences, strict=True):
            compared = comparisons.compare(board, first, second, metric)
            if compared.interval is None:
                assert difference is None
                continue
            value, low, high, is_of_these_trainings = difference
            levels = first.mean(metric) - second.mean(metric)
            sign = -1 if METRICS[metric].less_is_better else 1
            assert value == pytest.approx(sign * levels, rel=1e-4, abs=1e-9)
            assert low <= value <= high
            width = compared.interval[1] - compared.interval[0]
            assert high - low == pytest.approx(width, rel=1e-3)
            assert is_of_these_trainings == compared.is_of_these_trainings


def test_what_may_not_be_published_stays_here_and_nothing_is_loaded_from_elsewhere(
    folder,
):
    public, own = folder / "public", folder / ".scratch/site/try"
    for name in ("index.html", "site.css", "page.js", "site.js"):
        text = (public / name).read_text().replace("https://vega.github.io/schema", "")
        text = text.replace("http://www.w3.org/2000/svg", "")  # names, not addresses
        assert "//" not in text.replace("\n//", "")
    search = (site.FILES / "front.js").read_text()
    assert "//" not in search.replace("\n//", "")
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
    whole, bare = (
        read_data(Path(of, "data/season.js")) for of in ("whole", "bare/try")
    )
    assert bare["claims"] == whole["claims"] and len(bare["claims"]) > 1
    for here, there in zip(bare["boards"], whole["boards"], strict=True):
        assert (
            f"rematch fetch {here['dataset']}" in here["lacks"] and not there["lacks"]
        )
        assert here | {"lacks": ""} == there
    assert main(["site"]) == 0  # for this machine alone
    own = read_data(Path(".scratch/site/try/data/season.js"))
    for here, there in zip(bare["boards"], own["boards"], strict=True):
        assert f"rematch fetch {there['dataset']}" in there["lacks"]
        assert here["lacks"] != there["lacks"]
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
    assert 'href="try/index.html#claims"' in front
    assert all(link == "data:," or Path("bare", link).is_file() for link in links)
    for own in re.findall(r'href="#([^"]+)', front):
        assert own.startswith("find=") or f'id="{own}"' in front


def test_the_search_knows_every_row_and_claim(tmp_path, tmp_path_factory, monkeypatch):
    report_seasons.enter_reported_season(
        tmp_path_factory, tmp_path / "reported", monkeypatch
    )
    assert main(["site", "--all", "--public", "all"]) == 0
    found = read_data(Path("all/data/search.js"))
    season = read_data(Path("all/try/data/season.js"))
    rows = [entry for entry in found if entry["kind"] == "row"]
    expected = []
    for board in season["boards"]:
        for row in board["rows"] if not board["layer"] else ():
            if row["status"] == "ok":
                expected.append((board["dataset"], row["preset"], row["place"]["mean"]))
    told = []
    for row in rows:
        page, _, address = row["href"].partition("#")
        assert Path("all", page).is_file()
        _, key, preset = map(unquote, address.split("/"))
        told.append((key.partition("/")[0], preset, row["mean"]))
    assert told == expected and len(told) > 4
    of_ledger = claim_ledger.ledger(claims_file.read_seasons(Path("reports")))
    claims_of = [
        entry for entry in found if entry["kind"] == "claim" and not entry["season"]
    ]
    assert {(entry["title"], entry["grade"]) for entry in claims_of} == {
        (row.claim.statement, row.grade) for row in of_ledger
    }
    assert len(claims_of) == len(of_ledger)
    are_tested = [
        bool(entry["verdicts"]) for entry in found if entry["kind"] == "claim"
    ]
    assert are_tested == sorted(are_tested, reverse=True)


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """The first page over the committed reports, without a site of any season, and the
    rows of the ledger."""
    folder = tmp_path_factory.mktemp("front")
    seasons = claims_file.read_seasons(COMMITTED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "ROOT", COMMITTED)
        nothing = {"boards": [], "claims": []}
        written = [{"season": of.season} | nothing for of in seasons]
        site.write_front(seasons, written, folder)
    return folder, seasons, ledger.read_ledger(seasons, COMMITTED)


def test_beside_a_grade_is_what_belongs_to_it_and_beside_a_verdict_its_reason(
    committed,
):
    folder, _, rows = committed
    of_address = {of["href"]: of for of in read_data(folder / "data/search.js")}
    of_grades = site.FAILING
    seen = set()
    for row in rows:
        entry = of_address[f"#{anchor(row)}"]
        seen.add(row.grade)
        for told, finding in zip(entry["verdicts"], row.photographs, strict=True):
            assert finding.place in told
            assert f"{finding.entry.conclusion}, {finding.entry.reason}" in told
        if row.grade in (*HOLDING, *FAILING):
            assert entry["why"] == row.graded.decisive.verdict.reason
        if row.grade in FAILING:
            conclusion = row.graded.decisive.verdict.conclusion
            assert conclusion in of_grades[row.grade]
    assert {*HOLDING, *FAILING} <= seen


def test_a_number_on_the_first_page_is_that_of_the_claims_behind_its_link(committed):
    folder, _, rows = committed
    front = (folder / "index.html").read_text()
    grades = [f"grade:{row.grade}" for row in rows]
    links = re.findall(r'href="#find=([^"]+)">(\d+) ', front)
    assert len(links) > 4
    for wanted, count in links:
        assert grades.count(unquote(wanted)) == int(count)
    asked = [unquote(each) for each in re.findall(r'"#find=(grade[^"]+)"', front)]
    assert asked.count("grade:fails") == 2  # how many, and why


def test_a_module_becomes_a_script():
    script = site.as_script("let x=1,y=2;export{x as default,y};/* MIT */")
    assert (
        script == '(()=>{let x=1,y=2;\nwindow.tables={"default":x,"y":y};})();/* MIT */'
    )


@pytest.fixture(scope="module")
def browser():
    """A browser without a network; what its pages log can be asked for."""
    if not (CHROMIUM and DRIVER):
        pytest.skip("no chromium")
    webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium")
    services = pytest.importorskip("selenium.webdriver.chrome.service")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options=options, service=services.Service(DRIVER)) as browser:
        yield browser


def visit(browser, page: Path, address: str, shown: str, width: int = 1400) -> list:
    """Open a page, of a width in pixels; returns the elements that it waits for."""
    waits = pytest.importorskip("selenium.webdriver.support.wait")
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get("about:blank")
    browser.get(f"{page.as_uri()}#{address}")
    wait = waits.WebDriverWait(browser, 90)
    found = wait.until(lambda of: of.find_elements("css selector", shown))
    assert not browser.find_elements("css selector", "#page script, #page b, #page i")
    assert browser.get_log("browser") == []
    return found


OPEN = "open%2Fretrieval"


@pytest.mark.parametrize(
    "address, shown",
    [
        (f"leaderboard/{OPEN}", "table.dataTable"),
        (f"leaderboard/{OPEN}?find=scan&by=rsum&order=asc", "th.dt-ordering-asc"),
        (f"claims/{OPEN}", ".papers .part"),
        (f"plots/{OPEN}", "figure svg"),
        (f"cell/{OPEN}/scan_i2t_lse", ".failed"),
        (f"queries/{OPEN}/scan_t2i_avg/t2i", "tbody button img"),
        (f"compare/{OPEN}/scan_t2i_avg/two_branch_bidirectional", "figure svg"),
    ],
)
@pytest.mark.parametrize("width", [1400, 390])
def test_every_page_opens_from_disk_and_runs_no_text_of_others(
    folder, browser, address, shown, width
):
    visit(browser, folder / "public/index.html", address, shown, width)
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= width  # what is wider scrolls in its own box


def test_a_row_is_a_line_and_on_a_narrow_screen_a_card(folder, browser):
    index = folder / "public/index.html"
    visit(browser, index, f"leaderboard/{OPEN}", "svg.bar")
    heights = (
        "return [...document.querySelectorAll('.dataTable tbody tr')]"
        ".map(r => r.offsetHeight)"
    )
    assert max(browser.execute_script(heights)) < 40
    box = browser.find_element("css selector", ".cards")
    fits = "return arguments[0].scrollWidth <= arguments[0].clientWidth"
    assert browser.execute_script(fits, box)
    assert not browser.find_element("id", "sort").is_displayed()
    visit(browser, index, f"leaderboard/{OPEN}", "svg.bar", width=390)
    assert not browser.find_element("css selector", ".cards thead").is_displayed()
    assert browser.find_element("id", "sort").is_displayed()
    assert browser.execute_script(fits, browser.find_element("css selector", ".cards"))
    label = "return getComputedStyle(arguments[0], '::before').content"
    ranks = browser.find_element("css selector", "tbody td")
    assert browser.execute_script(label, ranks) in ('"rank"', "attr(data-label)")


def test_the_rows_shown_can_be_downloaded(folder, browser):
    index = folder / "public/index.html"
    visit(browser, index, f"leaderboard/{OPEN}?by=rsum&order=asc", "#download")
    browser.execute_script(
        "window.download = (name, rows) => kept = [name, csvOf(rows)]"
    )
    browser.find_element("id", "download").click()
    name, text = browser.execute_script("return kept")
    records = list(csv.DictReader(io.StringIO(text)))
    told = read_data(folder / "public/data/season.js")
    board = next(b for b in told["boards"] if b["dataset"] == "open")
    rows = [row for row in board["rows"] if row["status"] == "ok"]
    assert name == "try-open-retrieval.csv"
    assert [record["preset"] for record in records] == [
        row["preset"] for row in sorted(rows, key=lambda row: row["metrics"]["rsum"])
    ]
    of_preset = {row["preset"]: row for row in rows}
    for record in records:
        row = of_preset[record["preset"]]
        assert float(record["rsum"]) == row["metrics"]["rsum"]
        assert float(record["rsum_low"]) == row["place"]["low"]
        assert [int(record["rank_first"]), int(record["rank_last"])] == row["place"][
            "ranks"
        ]
    odd = {"a": '=1+1, "b"', "b": -0.5, "c": None}
    text = browser.execute_script("return csvOf([arguments[0]])", odd)
    assert list(csv.reader(io.StringIO(text))) == [
        ["a", "b", "c"],
        ['\'=1+1, "b"', "-0.5", ""],
    ]


def test_two_rows_side_by_side_have_intervals_and_no_negative_zero(folder, browser):
    rounded = "return [number(-0.04), signed(-0.04), signed(0.26), number(-1.25)]"
    index = folder / "public/index.html"
    visit(browser, index, f"leaderboard/{OPEN}", "svg.bar")
    assert browser.execute_script(rounded) == ["0.0", "0.0", "+0.3", "-1.3"]
    picked = browser.find_elements("css selector", "input.pick")[:2]
    names = [box.get_attribute("value") for box in picked]
    for box in picked[::-1]:
        box.click()
    for pair in (names, names[::-1]):
        visit(browser, index, "/".join(["compare", OPEN, *pair]), "figure svg")
        cells = browser.find_elements("css selector", "table.plain:first-of-type tr")
        of_rsum = next(row.text for row in cells if row.text.startswith("rsum"))
        assert of_rsum.count("[") == 3
        pairs = read_data(folder / "public/data/pairs/open/retrieval.js")
        at = pairs["metrics"].index("rsum")
        value = pairs["differences"][0][at][0] * (1 if pair == names else -1)
        assert f"{value:+.1f} [" in of_rsum


def test_the_search_over_seasons_is_kept_in_the_address(
    browser, tmp_path, tmp_path_factory, monkeypatch
):
    report_seasons.enter_reported_season(
        tmp_path_factory, tmp_path / "reported", monkeypatch
    )
    assert main(["site", "--all", "--public", "all"]) == 0
    front = Path("all/index.html").resolve()
    visit(browser, front, "find=instance%20loss", "#found li")
    found = [entry for entry in read_data(Path("all/data/search.js"))]
    texts = [json.dumps(list(entry.values())).lower() for entry in found]
    both = [text for text in texts if "instance" in text and "loss" in text]
    shown = browser.find_elements("css selector", "#found li")
    assert len(shown) == len(both) > 3
    box = browser.find_element("id", "find")
    box.clear()
    box.send_keys("scan")
    assert browser.current_url.endswith("#find=scan")
    browser.find_element("css selector", "#found a[href^=try]").click()
    assert "try/index.html#cell/" in browser.current_url


def test_the_front_has_the_correlation_of_s_and_rsum_of_boards_that_have_one():
    known = {"count": 31, "groups": 8, "value": -0.6, "low": -0.9, "high": -0.3}
    boards = [{"overlap_and_rsum": known}, {"overlap_and_rsum": None}]
    written = [{"season": name, "boards": boards} for name in ("shown", "other")]
    assert site.correlations(written, ["shown"]) == [known | {"season": "shown"}]
