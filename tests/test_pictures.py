"""Pages of kinds and of limits say what the code says, and pictures what scripts draw."""

import csv
import dataclasses
import importlib
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from guide import ROOT, links_of

import colmatch as cm
from colmatch.kinds.registry import find
from colmatch.kinds.settings import describe_allowed

PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
MOST_BYTES = 30_000
SVG = "{http://www.w3.org/2000/svg}"


def named(path):
    return path.stem


def about(path):
    """What a screen reader says of a picture."""
    return ElementTree.parse(path).getroot().find(f"{SVG}desc").text


def drawn(script, folder):
    command = [sys.executable, str(ROOT / "docs" / "pictures" / f"{script}.py"), "--to", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert not done.returncode, done.stderr
    return sorted(folder.glob("*.svg"))


def test_there_are_pictures():
    assert len(PICTURES) > 15


@pytest.mark.parametrize("path", PICTURES, ids=named)
def test_a_picture_is_small_and_can_be_read_by_all(path):
    assert len(path.read_bytes()) < MOST_BYTES
    root = ElementTree.parse(path).getroot()
    assert root.get("role") == "img"
    texts = {part.get("id"): part.text for part in root if part.tag in (f"{SVG}title", f"{SVG}desc")}
    assert len(texts) == 2 and all(texts.values())
    assert set(root.get("aria-labelledby").split()) == set(texts)
    assert re.search(r'<rect width="\d+" height="\d+" fill="#ffffff"|fill: #ffffff', path.read_text())


@pytest.mark.parametrize("script", ["kinds", "batch", "front"])
def test_pictures_are_what_their_scripts_draw(script, tmp_path):
    new = drawn(script, tmp_path)
    kept = {path.name: path.read_text() for path in [*PICTURES, ROOT / "docs" / "_static" / "logo.svg"]}
    assert new and not [path.name for path in new if path.read_text() != kept[path.name]]


def test_pictures_of_figures_have_the_figures_of_today(tmp_path):
    pytest.importorskip("matplotlib")
    new = drawn("benchmarks", tmp_path)
    assert len(new) > 3
    assert not [path.name for path in new if about(path) != about(PICTURES[0].parent / path.name)]


def test_each_picture_is_on_a_page_with_words_for_it():
    shown = {}
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for words, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text()):
            shown[(page.parent / target).resolve()] = words
    assert set(PICTURES) <= set(shown)
    assert not [path for path, words in shown.items() if len(words.split()) < 4]


@pytest.mark.parametrize("kind", cm.index_kinds())
def test_a_kind_has_a_page_with_its_settings(kind):
    page = ROOT / "docs" / "kinds" / f"{kind}.md"
    assert f"kinds/{kind}.md" in [target for _, target in links_of((ROOT / "docs" / "kinds.md").read_text())]
    text = page.read_text()
    assert f"](../pictures/{kind}.svg)" in text
    table = text.partition("\n## Settings\n")[2].partition("\n## ")[0]
    rows = [re.split(r" \| ", line.strip("| ")) for line in table.splitlines() if line.startswith("|")][2:]
    settings = [
        [f"`{one.name}`", f"`{one.default!r}`".replace("'", '"'), describe_allowed(one), one.metadata["meaning"]]
        for one in dataclasses.fields(find(kind).settings)
    ]
    assert rows == settings


def constant(path):
    """The value of ``module:name`` below colmatch."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(f"colmatch.{module}"), name)


# What each row of docs/operations/limits.md says, and where the code says so.
LIMITS = {
    "text of an expression": [cm.Options().max_text_bytes, 2**30],
    "nesting of parentheses and NOT": [cm.Options().max_depth, 400],
    "operators of a computed value in a text": ["expr.functions:MOST_PARTS"],
    "arguments of `coalesce`, `concat` and `CASE`": ["expr.functions:MOST_PARTS"],
    "levels of a computed value": ["expr.computed:DEEPEST"],
    "conditions that `CASE`, `if` and `coalesce` within each other are written out to": ["sql.parse:MOST_CHOICES"],
    "parts of a large computed value that stands in several places": ["sql.computed:MOST_REPEATED"],
    "digits of a number or decimal": [38],
    "names with dots, parts of one": [64],
    "a regular expression with `{...}` in it": ["text.reduce:COUNTED_MOST"],
    "years before and after 1970 of a date whose parts are computed": ["events.computed.dates:MOST_YEARS"],
    "conditions of a [JSON rule](../json-rules.md), with those that it refers to": ["rules.joined:MOST_CONDITIONS"],
    "levels of a rule of any format": ["rules.refusal:DEEPEST"],
    "cases of a value in a rule of [JSONLogic](../jsonlogic.md) or flagd": ["rules.values:MOST_CASES"],
    "conjunctions of an AND of ORs": [cm.index("scan").dnf_budget, 4096],
    "conjunctions of all parts of an OR at the top together": [16],
    "pieces that an expression beyond the budget is divided into": [
        "kinds.settings:PROGRAMS_MOST",
        "expr.assemble:MOST_PREDICATES",
    ],
    "weights and priorities": ["lowering.weights:WEIGHT_MOST"],
    "text of all string ids together": ["subscriptions.ids:MOST_BYTES"],
    "entries and lists of `kindex`": ["kinds.kindex:MOST_ENTRIES", "kinds.kindex:MOST_LISTS"],
    "words of clusters of `propagation`": ["kinds.propagation:MOST_WORDS"],
    "expressions of `matcher.rejected` that updates keep": ["subscriptions.rejected:KEPT_MOST"],
    "rows that are matched at a time": [cm.Options().batch_rows, 2**20],
    "threads": [1024],
    "values of the rows that are matched at a time": [2**31 - 1],
    "pairs of `cm.from_pairs`": ["events.long_form:PAIRS_MOST"],
    "levels of nested types of a column": ["given.incoming:NESTED_MOST"],
    "combinations of conditions on [ranges](../ranges.md) in one AND of ORs": ["kernels.meets:MOST_POINTS"],
    "observed events, events of a sample": ["events.sample:MOST_EVENTS", "events.sample:MOST_BYTES"],
    "kept columns in one batch of results": ["matching.pieces:BYTES_MOST"],
    "one section of an update in a journal, or of a record in pages": ["predicates.records:MOST_BYTES"],
    "subscriptions of the segment that takes inserts": ["updates.policy:GROWING_MOST"],
    "segments before an update waits for a merge": ["updates.policy:SEGMENTS_MOST"],
    "log of a file of pages before it is copied to the file": ["paged.file:LOG_MOST"],
    "folders of compiled kernels beside each other": ["kernels._folders:FOLDERS_KEPT"],
    "sets of regular expressions in the cache folder": ["text.hyperscan_sets:FILES_KEPT"],
    "shards of a folder": ["spark.shards:SHARDS_MOST"],
    "rejected expressions of a shard that a build tells of": ["spark.shard_tasks:REJECTED_MOST"],
    "index that goes with each task of a Connect stream, compressed": ["spark.shipping:PACKED_MOST"],
    "matches of one batch that goes back to Spark": ["spark.worker:PAIRS_MOST"],
    "matchers that a worker keeps": ["spark.worker:MATCHERS_MOST"],
}


def limits():
    """(What is limited, what the table says) of each row of the page."""
    lines = (ROOT / "docs" / "operations" / "limits.md").read_text().splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ") and "| most |" not in line]
    return {row[0]: row[1] for row in rows}


def test_all_limits_are_checked():
    assert list(limits()) == list(LIMITS)


@pytest.mark.parametrize("what", LIMITS)
def test_a_limit_is_that_of_the_code(what):
    values = LIMITS[what]
    if any(isinstance(value, str) and value.startswith("spark.") for value in values):
        pytest.importorskip("pyspark")
    said = limits()[what]
    for value in [constant(value) if isinstance(value, str) else value for value in values]:
        shown = f"{value:g}".replace("+", "") if isinstance(value, float) else f"{value:,}"
        assert re.search(rf"(?<![\d,]){shown}(?![\d,]*\d)", said), (shown, said)


@pytest.mark.parametrize(
    ("option", "most"), [("max_text_bytes", 2**30), ("max_depth", 400), ("batch_rows", 2**20), ("threads", 1024)]
)
def test_options_have_the_limits_that_the_page_says(option, most):
    cm.Options(**{option: most})
    with pytest.raises(cm.OptionError):
        cm.Options(**{option: most + 1})


@pytest.mark.parametrize(("text", "good"), [("1" * 38, True), ("1" * 39, False)], ids=["38", "39"])
def test_a_number_has_38_digits(text, good):
    errors = cm.Matcher.build({1: f"a < {text}"}, {"a": "double"}, errors="collect", max_rejected=1.0).rejected
    assert bool(errors) is not good


@pytest.mark.parametrize(("parts", "said"), [(64, "column"), (65, "too long")], ids=["64", "65"])
def test_a_name_has_64_parts(parts, said):
    with pytest.raises(cm.ExpressionError, match=said):
        cm.Matcher.build({1: f"{'.'.join(['a'] * parts)} = 1"}, {"a": "double"})


def test_the_page_of_memory_has_the_measured_bytes():
    with (ROOT / "asv_benchmarks" / "results" / "memory.csv").open() as file:
        measured = {(row["kind"], row["workload"]): row["bytes_each"] for row in csv.DictReader(file)}
    text = (ROOT / "docs" / "operations" / "memory.md").read_text().partition("\n| kind |")[2].partition("\n\n")[0]
    head, _, *rows = [re.sub("`", "", line).strip("| ").split(" | ") for line in f"kind |{text}".splitlines()]
    said = {(row[0], workload): size for row in rows for workload, size in zip(head[1:], row[1:], strict=True)}
    assert said == measured
    assert {kind for kind, _ in measured} == set(cm.index_kinds())
