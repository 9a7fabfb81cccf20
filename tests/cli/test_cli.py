"""The command: its exit codes, its messages, and that help and listings stay light."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path

import pytest

import harness
from harness import cli, contract, registry
from harness.cli import scaffold
from harness.errors import UsageError
from harness.records import Store
from harness.registry import finding
from harness.running import fitting, grid, neighbours
from harness.running.engines import local
from tests.saved_models.cells import kept_cell
from tests.support import made_records
from tests.support.fake_plugins import PLUGIN

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, light_server: None) -> Path:
    """A plugin file, cells that end as their architecture's name says, and a working directory of
    the test's own."""
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    monkeypatch.setattr(local, "run", functools.partial(local.run, function="tests.support.fake_cells:run_cell"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARCHBENCH_DATA", raising=False)
    file = tmp_path / "toys.py"
    file.write_text(PLUGIN)
    return file


@pytest.fixture
def command(capsys, toys):
    """Runs one command line; returns exit code, standard output, standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        finding._plugins.clear()
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    return call


@pytest.fixture
def run(command, toys):
    """``archbench run`` on the toy plugin, without MLflow unless asked."""

    def call(*arguments: str) -> tuple[int, str, str]:
        mirror = () if "--mlflow" in arguments else ("--mlflow", "none")
        return command("run", "--plugin", str(toys), "--results", "results", *mirror, *arguments)

    return call


def fresh(*arguments: str) -> tuple[str, set[str]]:
    """Output and imported heavy packages of a command in a process of its own."""
    code = (
        "import sys\nfrom harness.cli import main\n"
        "try:\n    main(sys.argv[1:])\nfinally:\n"
        "    heavy = {'torch', 'mlflow', 'datasets', 'pandas', 'pytorch_lightning', 'numpy'} & set(sys.modules)\n"
        "    print(','.join(heavy), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return done.stdout, set(filter(None, done.stderr.splitlines()[-1].split(",")))


# --- looking around ---


@pytest.mark.parametrize(
    "arguments", [("--help",), ("list",), ("list", "tasks", "--json"), ("run", "--help"), ("--version",)]
)
def test_help_and_listings_import_nothing_heavy(arguments):
    """Else they would keep their user waiting for torch; how long they take, `make bench` says."""
    out, heavy = fresh(*arguments)
    assert out.strip()
    assert heavy == set(), "a listing must not pay for what only a run needs"


ONE_OF_MANY = (
    "from harness.registry import Recipe, register\n\n\n"
    '@register("{id}", name="Many", kind="text", paper="Nobody 1999", source="a test", year=1999, recipe=Recipe())\n'
    "class Many:\n" + "    sizes = [1, 2, 3]\n" * 50
)
LISTING = """
import ast, collections, sys
from pathlib import Path
from harness import cli
from harness.registry import sorts

sorts.ROOT = Path(sys.argv[1])
parsed, parse = [], ast.parse
ast.parse = lambda source, *rest, **options: parsed.append(source) or parse(source, *rest, **options)
try:
    cli.main(["list", "--plugin", str(sorts.ROOT / "plugin.py")])
finally:
    heavy = {"torch", "pydantic", "mlflow", "pandas", "numpy", "rich", "importlib.metadata"} & set(sys.modules)
    repeated = [source for source, count in collections.Counter(parsed).items() if count > 1]
    print(len(parsed), sum(map(len, parsed)), len(repeated), *heavy, file=sys.stderr)
"""


def test_a_listing_of_300_architectures_reads_each_file_once_and_imports_nothing_heavy(tmp_path):
    """The catalogue grows to that; what is parsed and imported decides how long its user waits."""
    for number in range(300):
        file = tmp_path / f"architectures/family_{number % 20}/cnn_{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(ONE_OF_MANY.format(id=f"cnn_{number}"))
    for folder in ("tasks", "harness"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "plugin.py").write_text(ONE_OF_MANY.format(id="of_a_user"))
    done = subprocess.run(
        [sys.executable, "-c", LISTING, str(tmp_path)], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^  (cnn_\d+|of_a_user) ", done.stdout, re.MULTILINE)) == 301
    files, characters, repeated, *heavy = done.stderr.split()
    ours = sum(len(list((ROOT / folder).glob("*.py"))) for folder in ("tasks", "harness/problems"))
    assert 301 < int(files) <= 301 + ours
    assert (repeated, heavy) == ("0", [])
    assert int(characters) < 0.5 * 300 * len(ONE_OF_MANY), "of our own files only the decorators are parsed"


def test_the_version_is_that_of_the_installed_package(command, monkeypatch):
    """A bug report names it; a checkout that was never installed has none, and says so."""
    written = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert command("--version") == (0, f"archbench {written}\n", "")

    def version(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert harness.__version__ == "0+unknown"


def test_help_groups_commands_and_options_by_what_they_are_for(command):
    """Twenty-five options in one list are read by nobody."""
    out = command("--help")[1]
    panel, found = "", {}
    for line in out.splitlines():
        if named := re.match(r"╭─ (.+?) ─", line):
            panel = named[1]
        elif name := re.match(r"│ ([a-z][a-z-]*) ", line):
            found.setdefault(panel, []).append(name[1])
    assert found == {
        "Run a grid": ["list", "doctor", "run", "new-task", "try"],
        "Add a model": ["check", "new"],
        "Work with results": ["leaderboard", "ui", "rescore", "sync", "predict", "models"],
    }
    out = command("run", "--help")[1]
    panels = [line.split()[1] for line in out.splitlines() if line.startswith("╭")]
    assert panels == ["Options", "Grid", "Data", "Training", "Execution", "Output"]


def test_list_shows_each_architecture_under_its_family(command, toys):
    code, out, _ = command("list", "architectures", "--plugin", str(toys))
    assert code == 0
    assert re.search(r"toy_fit +Toy counts +fit +Nobody 1999 +1999", out)
    assert "toy_topic" not in out


def test_list_as_json_can_be_read_by_a_program(command, toys):
    _, out, _ = command("list", "--json", "--plugin", str(toys))
    found = json.loads(out)
    [topic] = [task for task in found["tasks"] if task["id"] == "toy_topic"]
    assert (topic["type"], topic["metrics"], topic["sizes"]) == ("classify", ["accuracy"], {"train": 9})
    assert {"toy_text", "toy_seq"} <= {a["id"] for a in found["architectures"]}


def test_list_says_how_much_of_test_stands_in_train(command, toys):
    """Whoever chooses a task sees it before the first run of their own."""
    plain = "list", "tasks", "--plugin", str(toys)
    _, out, _ = command(*plain)
    assert "test in train" not in out
    fields = {"counts": {"train": 9, "test": 20}, "overlap": {"exact": 1, "near": 3, "words": 13}}
    Store("other").write(made_records.record("toy_fit", "toy_topic", 0.5, **fields))
    _, out, _ = command(*plain, "--results", "other")
    assert re.search(r"toy_topic .* train 9 +1 / 3\n", out) and re.search(r"sst2 .* unknown\n", out)
    _, out, _ = command(*plain, "--results", "other", "--json")
    tasks = {task["id"]: task["overlap"] for task in json.loads(out)["tasks"]}
    assert tasks["sst2"] is None
    assert tasks["toy_topic"] == {"tier": "local", "train": 9, "test": 20, "overlap": fields["overlap"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-a", "toy_txt"], "did you mean toy_text"),
        (["-a", "Toy-Text"], "did you mean toy_text"),
        (["-t", "toys.py"], "-t toys.py: a file of data; `archbench new-task toys.py` describes it"),
        (["--parent", "vectors=toy_text", "--parent", "vectors=toy_seq"], "--parent vectors=: given 2 times"),
        (["-a", "zzz*"], "no architecture is called 'zzz*'"),
        (["-t", "toy_topics"], "did you mean toy_topic"),
        (["--protocol", "eqal"], "did you mean equal"),
        (["--budget", "ful"], "--budget ful: unknown; did you mean full? Choose from full"),
        (["--tier", "lokal"], "did you mean local"),
        (["--engine", "locl"], "did you mean local"),
        (["--precision", "31"], "--precision 31"),
        (["--seeds", "0,x"], "--seeds 0,x: expected whole numbers"),
        (["--seeds", "-1"], "--seeds"),
        (["--seeds", "4294967296"], "--seeds 4294967296: expected one or more, from 0 to 4,294,967,295"),
        (["--seeds", "9" * 5000], "expected whole numbers from 0"),
        (["--tier", "local"], "--tier local needs --data-dir"),
        (["--tier", "local", "--data-dir", "nowhere"], "nowhere: no such folder"),
        (["-o", "toy_text.hiden=3"], "did you mean hidden"),
        (["--vectors", "nowhere.txt"], "--vectors nowhere.txt"),
        (["--inputs", "char_cnn_word"], "did you mean char_cnn_words"),
        (["--inputs", "elmo"], "Choose from char_cnn_words, char_lstm_words"),
        (["--plugin", "nowhere.py"], "--plugin"),
        (["--protcol", "equal"], "--protocol"),
        (["--workers", "0"], "workers"),
        (["--speed-alone", "--workers", "2"], "--speed-alone with --workers 2: it measures one cell at a time"),
        (["--speed-alone", "--engine", "ray"], "--speed-alone with --engine ray"),
    ],
)
def test_a_command_that_cannot_be_meant_ends_with_2_and_one_clear_message(run, arguments, message):
    defaults = ["-a", "toy_text"] * ("-a" not in arguments) + ["-t", "toy_topic"] * ("-t" not in arguments)
    code, _, err = run(*defaults, *arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
    assert not list(Path("results").rglob("*.json"))


def test_a_results_folder_that_cannot_be_written_is_said_before_anything_runs(run):
    Path("results").write_text("a file in the way")
    code, _, err = run("-a", "toy_text", "-t", "toy_topic")
    assert (code, "--results" in err, "Traceback" in err) == (2, True, False)


# --- running ---


def test_a_grid_runs_and_the_same_command_again_does_nothing(run):
    grid = ("-a", "toy_text,toy_seq", "-t", "toy_topic,toy_tags", "--seeds", "0,1", "--workers", "2")
    code, out, err = run(*grid)
    assert code == 0, err
    records = list(Store("results").all())
    assert sorted((r.architecture, r.task, r.status) for r in records if r.seed == 0) == [
        ("toy_seq", "toy_tags", "ok"),
        ("toy_seq", "toy_topic", "ok"),
        ("toy_text", "toy_tags", "skipped"),
        ("toy_text", "toy_topic", "ok"),
    ]
    assert "6 cells run: 6 ok" in out
    before = {path: path.stat().st_mtime_ns for path in Path("results/records").rglob("*.json")}
    code, out, _ = run(*grid)
    assert (code, "0 cells run" in out, "8 finished before: 6 ok, 2 skipped" in out) == (0, True, True)
    assert before == {path: path.stat().st_mtime_ns for path in Path("results/records").rglob("*.json")}


def test_speed_is_measured_alone_by_one_cell_at_a_time_and_no_other_run(run, monkeypatch):
    """What was asked for must hold from the first cell to the last, or be refused: nobody can see
    it from the figures."""
    monkeypatch.setattr(
        neighbours, "NAME", f"test-{uuid.uuid4().hex[:8]}"
    )  # apart from the runs of the tests beside this one
    seen, workers = [], []
    original = local.run

    def watched(cells, settings, **options):
        workers.append(options["workers"])
        with pytest.raises(UsageError, match="measures speeds alone"), neighbours.run_of_cells(alone=False):
            seen.append("another run began")
        return original(cells, settings, **options)

    monkeypatch.setattr(local, "run", watched)
    cells = ("-a", "toy_text,toy_seq", "-t", "toy_topic", "--speed-alone")
    code, _, err = run(*cells)
    assert (code, workers, seen, "finished cells may" in err) == (0, [1], [], False)
    with neighbours.run_of_cells(alone=False):
        code, _, err = run("-a", "toy_text", "-t", "toy_topic", "--seeds", "1", "--speed-alone")
    assert (code, "--speed-alone: other archbench runs on this machine: 1;" in err) == (2, True)
    store = Store("results")
    for record, beside in zip(store.all(), (0, 1), strict=True):
        store.write(record.model_copy(update={"speed": {"train_examples_per_second": 1.0, "beside": beside}}))
    assert "1 finished cells may have been timed next to other work and keep those speeds" in run(*cells)[2]


def test_a_failed_cell_gives_1_now_and_later_and_runs_again_only_when_asked(run, toys):
    toys.write_text(PLUGIN.replace('"toy_seq"', '"raises"'))
    code, out, _ = run("-a", "raises,toy_text", "-t", "toy_topic")
    assert code == 1
    assert "a model that raises" in out and "work/logs/toy_topic-raises" in out
    path = next(Path("results/records/toy_topic/raises").glob("*.json"))
    first = path.stat().st_mtime_ns
    code, out, _ = run("-a", "raises,toy_text", "-t", "toy_topic")
    assert (code, "--retry-failed" in out, path.stat().st_mtime_ns) == (1, True, first)
    code, out, _ = run("-a", "raises,toy_text", "-t", "toy_topic", "--retry-failed")
    assert (code, "1 cells run" in out) == (1, True)
    assert path.stat().st_mtime_ns > first


def test_a_dry_run_says_what_would_happen_and_writes_nothing(run):
    code, out, _ = run("-a", "toy_text", "-t", "toy_topic,toy_tags", "--dry-run")
    assert code == 0
    assert "run   toy_text on toy_topic" in out
    assert "skip  toy_text on toy_tags, seed 0: gives what tag cannot use" in out
    assert not Path("results").exists()


def test_home_plans_one_task_each_and_tells_who_has_none(run):
    """Of every pair that fits, the paper's own data set is what deserves the full budget."""
    code, out, err = run("-a", "dan,hmm,seq2seq,toy_text,toy_seq", "--home", "--dry-run")
    assert code == 0, err
    found = re.findall(r"(run|skip) +(\w+) on (\w+)", out)
    assert found == [("run", "hmm", "conll2003_pos"), ("run", "seq2seq", "multi30k"), ("run", "dan", "sst2")]
    assert (
        "archbench: note: left out by --home: toy_text, toy_seq: no home, since the catalogue does not know it" in err
    )
    code, out, _ = run("-a", "dan,hmm", "-t", "sst*", "--home", "--dry-run")
    assert (code, re.findall(r"run +(\w+) on (\w+)", out)) == (0, [("dan", "sst2")]), "-t chooses among the homes"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-a", "toy_*"), "toy_text, toy_wide, toy_seq, toy_fit: no home, since the catalogue does not know it"),
        (("-a", "dan,hmm", "-t", "snli"), "--home with -t snli: the homes are conll2003_pos, sst2"),
    ],
)
def test_home_of_nobody_is_refused(run, arguments, message):
    """An empty run would look like one that had finished before."""
    code, _, err = run(*arguments, "--home")
    assert (code, message in err) == (2, True), err
    assert not Path("results").exists()


def test_the_record_holds_the_command_and_the_limits_of_the_run(run, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/somewhere/bin/archbench", "run", "-a", "toy text", "--results", "/a/b"])
    run("-a", "toy_text", "-t", "toy_sound,toy_topic", "--max-train", "50", "-o", "toy_text.hidden=7")
    found = {r.task: r for r in Store("results").all()}
    assert found["toy_sound"].command == "archbench run -a 'toy text' --results b"
    assert found["toy_topic"].hyperparameters["limits"] == {"max_train": 50, "max_epochs": None}
    assert found["toy_topic"].hyperparameters["hidden"] == 7


def test_a_broken_plugin_is_named_and_the_rest_runs(run, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text(PLUGIN.replace("toy_", "broken_").replace("class Base", "import no_such_module\n\n\nclass Base"))
    code, out, err = run("--plugin", str(broken), "-a", "toy_text,broken_text", "-t", "toy_topic")
    assert code == 1
    assert str(broken) in err and "no_such_module" in err
    assert "1 cells run: 1 ok" in out


def test_a_plugin_that_exits_when_imported_is_named_and_the_rest_runs(run, tmp_path):
    """The whole grid ended there, in silence and with success."""
    exits = tmp_path / "exits.py"
    exits.write_text(PLUGIN.replace("toy_", "exits_") + "\nimport sys\nsys.exit(0)\n")
    code, out, err = run("--plugin", str(exits), "-a", "toy_text,exits_text", "-t", "toy_topic")
    assert (code, str(exits) in err, "SystemExit" in err) == (1, True, True)
    assert "1 cells run: 1 ok" in out


def test_a_damaged_record_is_named_and_never_overwritten(run):
    run("-a", "toy_text", "-t", "toy_topic")
    [path] = Path("results/records").rglob("*.json")
    path.write_text("{ cut off")
    code, _, err = run("-a", "toy_text", "-t", "toy_topic")
    assert (code, str(path.resolve()) in err, path.read_text()) == (1, True, "{ cut off")


def test_mlflow_that_cannot_be_reached_costs_a_warning_and_no_record(run):
    code, _, err = run("-a", "toy_text,toy_seq", "-t", "toy_topic", "--mlflow", "http://127.0.0.1:9")
    assert code == 0
    assert len(list(Path("results/records").rglob("*.json"))) == 2
    assert err.count("archbench sync") == 1, "said once, not at every cell"


def test_records_are_mirrored_and_sync_finds_nothing_to_do(run, command):
    run("-a", "toy_text", "-t", "toy_topic", "--mlflow", "sqlite:///runs.db")
    code, out, _ = command("sync", "--results", "results", "--mlflow", "sqlite:///runs.db")
    assert (code, "0 runs added, 0 replaced, 1 up to date" in out) == (0, True)


def test_sync_with_a_server_that_does_not_answer_fails_with_one_line(run, command):
    run("-a", "toy_text", "-t", "toy_topic")
    code, _, err = command("sync", "--results", "results", "--mlflow", "http://127.0.0.1:9")
    assert (code, err.count("\n")) == (1, 1)


@pytest.mark.parametrize("by", ["option", "variable"])
def test_sync_with_none_says_that_there_is_nothing_to_do(command, monkeypatch, by):
    """Whoever has set the variable for all runs of a cluster read that MLflow does not write to
    folders any more, and that this very command mends it."""
    if by == "variable":
        monkeypatch.setenv("ARCHBENCH_MLFLOW", "none")
    code, _, err = command("sync", "--results", "results", *(["--mlflow", "none"] if by == "option" else []))
    assert (code, "--mlflow none" in err, "sqlite:///" in err) == (2, True, True), err
    assert not Path("results").exists()


@pytest.mark.parametrize("words", [("models",), ("rescore",), ("sync",), ("leaderboard",)])
def test_a_results_folder_that_is_none_is_named(command, words):
    """A mistyped one was silence, or a new database; pages stood among the records from then on."""
    code, _, err = command(*words, "--results", "reslts")
    assert (code, "--results reslts: no such folder" in err) == (2, True), err
    Path("results/records/sst2").mkdir(parents=True)
    code, _, err = command(*words, "--results", "results/records")
    assert (code, "results/records: these are records; name the folder in which they lie" in err) == (2, True), err
    assert not Path("reslts").exists() and sorted(Path("results/records").iterdir()) == [Path("results/records/sst2")]


def test_ui_without_runs_says_how_to_get_some(command):
    code, _, err = command("ui", "--results", "results")
    assert (code, "archbench run" in err) == (2, True)


# --- plugins ---

TAKES_PLUGINS = {
    "run": ("run", "-a", "dan", "-t", "sst2", "--dry-run"),
    "check": ("check", "dan"),
    "list": ("list",),
    "doctor": ("doctor",),
    "leaderboard": ("leaderboard",),
    "sync": ("sync",),
    "rescore": ("rescore",),
}


@pytest.mark.parametrize(
    "text", ["x = 1\n", "class Mine(:\n", "def register(x): return x\n\n@register\nclass A: pass\n"]
)
@pytest.mark.parametrize("arguments", TAKES_PLUGINS.values(), ids=TAKES_PLUGINS)
def test_a_plugin_that_registers_nothing_ends_every_command_with_2(command, tmp_path, arguments, text):
    """Its author would wait for a row that never comes, also where nothing else needs the file."""
    Path("results").mkdir()
    (tmp_path / "idle.py").write_text(text)
    code, _, err = command(*arguments, "--plugin", "idle.py")
    assert (code, str(tmp_path / "idle.py") in err, "Traceback" in err) == (2, True, False)
    assert "registers nothing" in err or "idle.py:1: invalid syntax" in err


@pytest.mark.parametrize("arguments", [TAKES_PLUGINS["run"], TAKES_PLUGINS["check"]], ids=["run", "check"])
def test_a_plugin_that_cannot_be_imported_is_told_though_nothing_of_it_is_needed(command, tmp_path, arguments):
    (tmp_path / "broken.py").write_text(PLUGIN.replace("toy_", "broken_") + "\nimport no_such_module\n")
    code, _, err = command(*arguments, "--plugin", "broken.py")
    assert (code, str(tmp_path / "broken.py") in err, "no_such_module" in err) == (2, True, True)


@pytest.mark.parametrize("given", ["mine", "mine/*.py", "**/o*.py"])
def test_a_folder_and_a_wildcard_give_all_their_plugins(command, tmp_path, given):
    """Their tests and helper modules lie beside them and register nothing."""
    (tmp_path / "mine").mkdir()
    for name in ("one", "other"):
        (tmp_path / f"mine/{name}.py").write_text(PLUGIN.replace("toy_", f"{name}_"))
    (tmp_path / "mine/o_helper.py").write_text("SIZE = 3\n")
    (tmp_path / "mine/notes.txt").write_text("none of Python's\n")
    code, out, err = command("list", "--plugin", given)
    assert (code, "one_text" in out, "other_topic" in out) == (0, True, True), err


@pytest.mark.parametrize(
    ("given", "message"), [("nowhere", "no such file"), ("*.pyc", "no such file"), (".", "none of")]
)
def test_a_folder_or_wildcard_without_a_plugin_is_named(command, toys, given, message):
    toys.write_text("SIZE = 3\n")
    code, _, err = command("list", "--plugin", given)
    assert (code, f"--plugin {given}: " in err, message in err) == (2, True, True)


def test_the_pages_call_the_tasks_of_a_plugin_by_their_names(run, command, toys):
    """With their sizes too, as a task of the repository."""
    run("-a", "toy_text", "-t", "toy_topic")
    code, _, err = command("leaderboard", "--results", "results", "--plugin", str(toys))
    assert code == 0, err
    page = Path("results/leaderboard/task-toy_topic.html").read_text()
    assert "<h1>Topics</h1>" in page and "Official sizes: train 9" in page


def test_the_pages_show_texts_of_a_folder_that_is_named(run, command, monkeypatch):
    """Not of one in the environment: pages are published, and most texts may not be."""
    run("-a", "toy_text", "-t", "toy_topic")
    code, _, err = command("leaderboard", "--results", "results", "--data-dir", "nowhere")
    assert (code, "--data-dir nowhere: no such folder" in err) == (2, True)
    monkeypatch.setenv("ARCHBENCH_DATA", "nowhere")
    assert command("leaderboard", "--results", "results")[0] == 0


def test_new_writes_tasks_of_every_type_and_tests_that_pass(command):
    """A task had four lines in a guide for contributors, and no template."""
    for type in scaffold.TYPES:
        given = () if type == "classify" else ("--type", type)
        code, out, err = command("new", f"our_{type}", "--kind", "task", *given)
        assert code == 0, err
        assert f"archbench check our_{type} --plugin our_{type}.py" in out
    command("list", "--plugin", "our_*.py")
    assert {type: registry.entry("tasks", f"our_{type}").type for type in scaffold.TYPES} == {
        t: t for t in scaffold.TYPES
    }
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, Path().glob("test_our_*.py"))]
    done = subprocess.run(
        tests, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("name", "kind"), [("none", "text"), ("text_encoder", "text"), ("random", "task")])
def test_new_refuses_a_name_whose_class_is_something_else(command, name: str, kind: str):
    """It wrote `class None`, and a task called Random that hid the generator it calls."""
    code, _, err = command("new", name, "--kind", kind)
    assert code == 2 and "its class would be called" in err and not Path(f"{name}.py").exists()


@pytest.mark.parametrize("kind", scaffold.TASKS)
def test_new_writes_a_plugin_and_a_test_that_passes(command, tmp_path, monkeypatch, kind):
    """Whoever starts from the scaffold starts from something that works: it keeps the contract, on
    two kinds also what takes training."""
    folder = tmp_path / "mine"
    code, out, err = command("new", "our_model", "--kind", kind, "--out", str(folder))
    assert code == 0, err
    assert f"archbench check our_model --plugin {folder}/our_model.py" in out
    assert f"archbench run -a our_model -t {scaffold.TASKS[kind]}" in out
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    spec = importlib.util.spec_from_file_location(f"test_{kind}_scaffold", folder / "test_our_model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tests = [f for name, f in vars(module).items() if name.startswith("test_") and name != "test_it_keeps_the_contract"]
    assert tests and hasattr(module, "test_it_keeps_the_contract")
    for test in tests:
        test()
    entry = registry.entry("architectures", "our_model")
    task = registry.entry("tasks", scaffold.TASKS[kind])
    assert fitting.reason_to_skip(entry, task, grid.hyperparameters(entry)) is None
    case = next(contract.cases(entry))
    for _, body in case.checks(learning=kind in ("text", "answer")):
        body()
    if kind == "fit":  # what the command runs that is printed; its texts, unlike those of the case, are lists of words
        record = kept_cell("our_model", scaffold.TASKS[kind], tmp_path / "results")
        assert record.status == "ok", record.error


def test_what_new_writes_is_formatted_and_has_no_name_of_the_template(command, tmp_path, monkeypatch):
    """In a checkout, its lint would refuse the file that it has just written."""
    monkeypatch.setattr(scaffold, "_ROOT", tmp_path / "checkout")
    (tmp_path / "checkout/harness").mkdir(parents=True)
    (tmp_path / "checkout/pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    for type in scaffold.TYPES:
        command("new", f"our_{type}_corpus", "--kind", "task", "--type", type, "--out", str(tmp_path / "mine"))
    for kind in scaffold.TASKS:
        command("new", f"our_{kind}_model", "--kind", kind, "--family", "contributed")
        command("new", f"our_{kind}_model", "--kind", kind, "--out", str(tmp_path / "mine"))
    files = list(tmp_path.rglob("*.py"))
    assert len(files) == 4 * len(scaffold.TASKS) + 2 * len(scaffold.TYPES) + 1  # toys.py
    for file in files:
        assert not re.search("my.?(model|task)|2000", file.read_text(), re.IGNORECASE), file
    for arguments in (["check"], ["format", "--check"]):
        lint = [sys.executable, "-m", "ruff", *arguments, "--quiet", "--no-cache"]
        lint += ["--config", str(ROOT / "pyproject.toml"), str(tmp_path / "mine"), str(tmp_path / "checkout")]
        done = subprocess.run(lint, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_new_knows_every_kind_that_an_architecture_has(command):
    """A kind without a template is learnt from other people's files, or not at all."""
    assert {entry.kind for entry in registry.entries("architectures").values()} <= {*scaffold.KINDS, "floor"}
    files = {path.stem for path in scaffold.TEMPLATES.glob("*.py")}
    plugins = {*scaffold.TASKS, *(f"task_{type}" for type in scaffold.TYPES)}
    assert files == plugins | {f"test_{plugin}" for plugin in plugins}
    assert set(registry.TASK_TYPES) <= set(scaffold.TYPES)
    out = " ".join(command("new", "--help")[1].replace("│", " ").split())
    assert [kind for kind in (*scaffold.KINDS, *scaffold.TYPES) if not re.search(rf"\b{kind}\b", out)] == []


def test_new_writes_where_it_was_called_and_its_next_steps_work(command, tmp_path):
    """It once wrote into the checkout's own folders, wherever it was called."""
    code, out, err = command("new", "our_model")
    assert code == 0, err
    assert {"our_model.py", "test_our_model.py"} <= {file.name for file in tmp_path.iterdir()}
    assert "archbench check our_model --plugin our_model.py\n" in out
    assert command("list", "--plugin", "our_model.py")[0] == 0


def test_new_from_an_installed_package_writes_where_it_was_called(command, tmp_path, monkeypatch):
    """There is no checkout to write into, and none is asked for."""
    monkeypatch.setattr(scaffold, "_ROOT", tmp_path / "site-packages")
    assert command("new", "our_model", "--kind", "seq")[0] == 0
    assert (tmp_path / "our_model.py").is_file()
    code, _, err = command("new", "other_model", "--family", "recurrent")
    assert (code, "--family" in err, (tmp_path / "site-packages").exists()) == (2, True, False)


def test_new_in_the_root_of_a_checkout_tells_the_place_of_a_contribution(command, monkeypatch):
    """Whoever stands there may want to contribute, and must not have to read the help for it."""
    monkeypatch.setattr(scaffold, "is_checkout", lambda folder: folder == Path())
    assert "--family" in command("new", "our_model")[1]
    monkeypatch.setattr(scaffold, "is_checkout", lambda folder: False)
    assert "--family" not in command("new", "other_model")[1]


def test_new_in_a_checkout_puts_both_files_where_they_belong(command, tmp_path, monkeypatch):
    monkeypatch.setattr(scaffold, "_ROOT", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "harness").mkdir()
    code, out, _ = command("new", "my_model", "--kind", "seq", "--family", "recurrent")
    assert code == 0
    assert out.split()[:2] == [
        str(tmp_path / "architectures/recurrent/my_model.py"),
        str(tmp_path / "tests/architectures/recurrent/test_my_model.py"),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["My-Model"], "lower-case letters"),
        (["class"], "lower-case letters"),
        (["my_model", "--kind", "txt"], "did you mean text"),
        (["my_model", "--family", "../x"], "--family ../x"),
        (["my_model", "--family", "mine"], "exclude each other"),
        (["my_task", "--kind", "task", "--type", "clasify"], "did you mean classify"),
        (["my_model", "--kind", "text", "--type", "classify"], "--kind task"),
        (["sst2", "--kind", "task"], "already registered"),
    ],
)
def test_new_refuses_names_that_cannot_be_one(command, tmp_path, arguments, message):
    code, _, err = command("new", "--out", str(tmp_path / "mine"), *arguments)
    assert (code, message in err) == (2, True)
    assert not (tmp_path / "mine").exists()


def test_new_overwrites_nothing(command, tmp_path):
    command("new", "my_model", "--out", str(tmp_path / "mine"))
    (tmp_path / "mine/my_model.py").write_text("# a day's work\n")
    code, _, err = command("new", "my_model", "--out", str(tmp_path / "mine"))
    assert (code, "exists already" in err) == (2, True)
    assert (tmp_path / "mine/my_model.py").read_text() == "# a day's work\n"


def test_check_of_an_unknown_name_offers_a_near_one(command, toys):
    code, _, err = command("check", "toy_txt", "--plugin", str(toys))
    assert (code, "did you mean toy_text" in err) == (2, True)


def test_check_takes_a_task_too(command, toys):
    """Its author had nothing but failed cells to learn from."""
    code, out, err = command("check", "sst2")
    assert (code, "mini: every split can be read" in out, "majority: accuracy 0.500" in out) == (0, True, True), err
    code, out, _ = command("check", "toy_topic", "--plugin", str(toys))
    assert (code, "every row of dev is a row of train too" in out) == (1, True)
    code, _, err = command("check", "toy_topi", "--plugin", str(toys))
    assert (code, "no architecture or input or task is called 'toy_topi'; did you mean toy_topic" in err) == (2, True)


# --- doctor ---


def findings(out: str) -> dict[str, str]:
    """``ok`` or ``wrong`` by what was looked at."""
    return {m[2].strip(): m[1] for m in re.finditer(r"^ *(ok|wrong) +(.+?)  ", out, re.MULTILINE)}


def test_doctor_finds_this_machine_in_order(command):
    code, out, _ = command("doctor", "--results", "results")
    found = findings(out)
    assert {"Python", "torch", "mlflow", "threads", "malloc", "GPU", "results", "architectures", "tasks"} <= set(found)
    assert {found[name] for name in ("Python", "torch", "mlflow", "results", "architectures", "tasks")} == {"ok"}
    assert code == (1 if "wrong" in found.values() else 0), "threads and GPU are the machine's"


def test_doctor_names_what_is_wrong(command, tmp_path):
    """A data folder with one readable corpus of many, a results folder in the way, a plugin that
    fails."""
    trees = tmp_path / "data/sst/trees"
    trees.mkdir(parents=True)
    for split in ("train", "dev", "test"):
        (trees / f"{split}.txt").write_text("(3 (2 It) (3 works))\n")
    (tmp_path / "results").write_text("a file in the way")
    broken = tmp_path / "broken.py"
    broken.write_text(PLUGIN.replace("toy_", "broken_").replace("class Base", "import no_such_module\n\n\nclass Base"))
    code, out, _ = command("doctor", "--results", "results", "--data-dir", "data", "--plugin", str(broken))
    found = findings(out)
    assert code == 1
    assert (found["data of sst2"], found["data of squad1"], found["results"]) == ("ok", "wrong", "wrong")
    assert "no_such_module" in out


def test_doctor_looks_at_the_tasks_that_were_asked_for_and_no_others(command, tmp_path):
    """A user with one corpus got fifteen red lines for those of others, and exit code 1."""
    local = 'def local(self, folder, split):\n        return [{"id": "1", "text": "a b"}]'
    text = PLUGIN[PLUGIN.index('@register_task(\n    "toy_topic"') :].partition('@register_task(\n    "toy_sound"')[0]
    text = text.replace("toy_topic", "own_topic")  # other tests have imported a toy_topic
    head = "from harness.registry import register_task\nfrom harness.task import Task\n\n"
    (tmp_path / "mine.py").write_text(f"{head}{text}class Mine(Task):\n    {local}\n")
    arguments = ("doctor", "-t", "own_topic", "--plugin", "mine.py", "--results", "results")
    code, out, _ = command(*arguments, "--data-dir", str(tmp_path))
    assert (code, findings(out)["task own_topic"], "lacks the column label" in out) == (1, "wrong", True)
    code, out, _ = command(*arguments)
    assert findings(out)["task own_topic"] == "ok" and "--tier local" in out
    assert not [name for name in findings(out) if name.startswith("data of")]


def test_doctor_reads_more_than_the_first_row(command, tmp_path):
    trees = tmp_path / "data/sst/trees"
    trees.mkdir(parents=True)
    for split in ("train", "dev", "test"):
        (trees / f"{split}.txt").write_text("(3 (2 It) (3 works))\n" * 3 + "(3 (2 It\n" * (split == "test"))
    _, out, _ = command("doctor", "--results", "results", "--data-dir", "data")
    assert findings(out)["data of sst2"] == "wrong" and "line 4" in out


def test_cells_of_other_data_run_again_and_say_why(run, monkeypatch, tmp_path):
    """The files were corrected since: the old score must not be taken for a result of the new ones,
    nor be lost."""
    from harness.running.changed_data import DataFolder

    grid = ("-a", "toy_text", "-t", "toy_topic", "--tier", "local", "--data-dir", str(tmp_path))
    monkeypatch.setattr(DataFolder, "differing", lambda self, record: [])
    run(*grid)
    assert "0 cells run" in run(*grid)[1]
    monkeypatch.setattr(DataFolder, "differing", lambda self, record: ["dev", "test"])
    code, out, err = run(*grid, "--dry-run")
    assert "1 to run" in out and len(list(Path("results").rglob("*.old"))) == 0
    code, out, err = run(*grid)
    assert (code, "1 cells run: 1 ok" in out) == (0, True)
    assert "toy_text on toy_topic, seed 0 will be run again because its dev and test data changed" in err
    assert "; the old record was renamed to" in err
    assert len(list(Path("results").rglob("*.json.old"))) == 1
