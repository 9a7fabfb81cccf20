"""Discovery: what is listed, what is loaded, and what a user is told about a plugin that is
wrong."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import registry
from harness.errors import RegistryError, UnknownName
from harness.registry import Recipe, finding

ROOT = Path(__file__).resolve().parent.parent
PLUGIN = """
from harness.registry import Recipe, register

@register("{id}", name="Mine", kind="text", paper="Nobody 2026", source="test", year=2026, recipe=Recipe(lr=0.25))
class Mine:
    pass
"""


pytestmark = pytest.mark.usefixtures("without_plugins")


@pytest.fixture
def plugin(tmp_path: Path) -> Callable[..., Path]:
    """Writes a plugin file and gives it as ``--plugin`` does."""

    def write(text: str = PLUGIN.format(id="mine"), name: str = "mine.py") -> Path:
        file = tmp_path / name
        file.write_text(text)
        registry.add_plugin(file)
        return file

    return write


def forget_entry_points() -> None:
    finding._installed.cache_clear()
    finding._declares_entry_points.cache_clear()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes files below the test's folder importable and names modules as entry points of another
    package."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(files: dict[str, str], *modules: str) -> Path:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        package = tmp_path / "toyplugins-1.0.dist-info"
        package.mkdir()
        (package / "METADATA").write_text("Name: toyplugins\nVersion: 1.0\n")
        points = "".join(f"{module} = {module}\n" for module in modules)
        (package / "entry_points.txt").write_text(f"[archbench.architectures]\n{points}")
        forget_entry_points()
        return tmp_path

    yield install
    forget_entry_points()
    for name in [n for n in sys.modules if n.partition(".")[0].startswith("toyplugin")]:
        del sys.modules[name]


# --- names ---


def test_a_misspelt_name_gets_near_ones():
    with pytest.raises(UnknownName, match=r"no architecture is called 'bilsm'; did you mean bilstm"):
        registry.entry("architectures", "bilsm")


def test_a_name_like_no_other_points_to_the_list():
    with pytest.raises(UnknownName, match=r"archbench list tasks"):
        registry.entry("tasks", "zzzzzz")


def test_a_pattern_that_fits_nothing_is_an_error_and_not_an_empty_run():
    assert [e.id for e in registry.match("architectures", "kim_cnn_stat*, dan")] == ["kim_cnn_static", "dan"]
    with pytest.raises(UnknownName, match="no architecture is called 'kim_ccn"):
        registry.match("architectures", "dan,kim_ccn*")
    with pytest.raises(RegistryError, match="no tasks are named: .*found ' , '"):  # an empty variable of a script
        registry.match("tasks", " , ")


def test_overlapping_patterns_choose_an_entry_once():
    assert [e.id for e in registry.match("architectures", "dan,da*")].count("dan") == 1


def test_an_option_of_another_sort_is_no_attribute():
    with pytest.raises(AttributeError, match=r"ArchitectureEntry.* no attribute 'metrics'"):
        _ = registry.entry("architectures", "dan").metrics


@pytest.mark.parametrize("sort", ["architectures", "tasks", "problems"])
def test_an_entry_can_be_sent_to_another_process_and_kept_in_a_set(sort):
    """Engines send entries to workers; caches are keyed by them."""
    for entry in registry.entries(sort).values():
        sent = pickle.loads(pickle.dumps(entry))
        assert sent == entry and len({sent, entry}) == 1


# --- plugins ---


def test_a_plugin_file_is_listed_and_loaded(plugin):
    file = plugin()
    entry = registry.entry("architectures", "mine")
    assert (entry.file, entry.kind, entry.recipe, entry.version, entry.class_name) == (
        file,
        "text",
        Recipe(lr=0.25),
        1,
        "Mine",
    )
    assert registry.load(entry).__name__ == "Mine"
    assert registry.registered("architectures", "mine") == dict(entry.options)


def test_a_plugin_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RegistryError, match=r"nowhere.py: no such file"):
        registry.add_plugin(tmp_path / "nowhere.py")


@pytest.mark.parametrize(
    ("imported", "decorator"),
    [
        ("from harness import registry", "@registry.register("),
        ("import harness.registry", "@harness.registry.register("),
    ],
)
def test_a_decorator_may_be_written_with_its_module(plugin, imported, decorator):
    """Such a class was silently no architecture."""
    plugin(PLUGIN.format(id="mine").replace("@register(", f"{imported}\n\n\n{decorator}"))
    assert registry.load(registry.entry("architectures", "mine")).__name__ == "Mine"


def test_a_decorator_of_another_library_is_none_of_ours(plugin):
    plugin("import other\n\n\n@other.register(name)\nclass Theirs:\n    pass\n" + PLUGIN.format(id="mine"))
    assert registry.entry("architectures", "mine").class_name == "Mine"


def test_a_file_given_twice_counts_once(plugin, tmp_path, monkeypatch):
    """Once by its full and once by its relative path: no 'registered twice'."""
    plugin()
    monkeypatch.chdir(tmp_path)
    registry.add_plugin("mine.py")
    assert len(registry.plugin_files()) == 1
    assert "mine" in registry.entries("architectures")


def test_a_folder_of_plugins_may_have_brackets_in_its_name(tmp_path, monkeypatch):
    """They are a wildcard to the shell, and part of the name here."""
    monkeypatch.setattr("harness.registry.finding._plugins", [])
    folder = tmp_path / "mine [2]"
    folder.mkdir()
    (folder / "mine.py").write_text(PLUGIN.format(id="mine"))
    registry.add_plugin(folder)
    assert "mine" in registry.entries("architectures")


def test_a_folder_of_pythons_path_that_may_not_be_read_is_passed_over(tmp_path, monkeypatch):
    """One of another user ended every command in a traceback."""
    listed = os.listdir

    def refuse(folder):
        if str(folder) == str(tmp_path):
            raise PermissionError(13, "Permission denied")
        return listed(folder)

    uncached = finding._declares_entry_points.__wrapped__
    before = uncached()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(os, "listdir", refuse)
    assert uncached() == before


def test_a_built_in_file_given_as_plugin_counts_once():
    """Whoever edits architectures/feedforward/dan.py and passes it to --plugin means that file."""
    registry.add_plugin(ROOT / "architectures" / "feedforward" / "dan.py")
    assert "dan" in registry.entries("architectures")


def test_loading_a_file_twice_gives_one_class(plugin):
    """Variants are compared and pickled by class: a second copy of a module would break both."""
    plugin(PLUGIN.format(id="mine") + PLUGIN.format(id="mine_too").replace("class Mine", "class Other"))
    first = registry.load(registry.entry("architectures", "mine"))
    registry.load(registry.entry("architectures", "mine_too"))
    assert registry.load(registry.entry("architectures", "mine")) is first


def test_files_of_the_same_name_in_two_folders_are_two_modules(plugin, tmp_path):
    (tmp_path / "other").mkdir()
    plugin()
    plugin(PLUGIN.format(id="mine_too"), "other/mine.py")
    loaded = [registry.load(registry.entry("architectures", id)) for id in ("mine", "mine_too")]
    assert loaded[0] is not loaded[1]


@pytest.mark.parametrize("taken", ["mine", "dan"])
def test_a_taken_id_names_both_files(plugin, taken):
    """Two models under one name would share their records."""
    first = plugin() if taken == "mine" else ROOT / "architectures" / "feedforward" / "dan.py"
    second = plugin(PLUGIN.format(id=taken), "second.py")
    with pytest.raises(RegistryError, match="registered twice") as error:
        registry.entries("architectures")
    assert str(first) in str(error.value) and str(second) in str(error.value)


def left_out(file) -> str:
    """Why a plugin file is not listed, while the rest is."""
    assert "dan" in registry.entries("architectures")
    return registry.unlisted("architectures")[file]


@pytest.mark.parametrize(
    "decorator",
    [
        '@register(ID, name="Mine", kind="text", paper="-", source="-", year=2026)',
        '@register("mine", name="Mine", kind=KIND, paper="-", source="-", year=2026)',
        '@register("mine", name="Mine", kind="text", paper="-", source="-", year=2026, recipe=Recipe(lr=RATE))',
        '@register("mine", name="Mine", kind="text", paper="-", source="-", year=2026, recipe=make())',
        '@register(name="Mine", kind="text", paper="-", source="-", year=2026)',
        '@register("mine", **OPTIONS)',
    ],
)
def test_arguments_that_a_listing_cannot_read_name_file_and_line(plugin, decorator):
    file = plugin(f"from harness.registry import Recipe, register\n\n{decorator}\nclass Mine:\n    pass\n")
    error = left_out(file)
    assert "literal" in error and f"{file}:3" in error


@pytest.mark.parametrize(
    ("decorator", "wrong"),
    [
        ('@register("mine", name="Mine", paper="-", source="-", year=2026)', "kind"),
        ('@register("mine", name="Mine", kind="txt", paper="-", source="-", year=2026)', "txt"),
        ('@register("mine", name="Mine", kind="text", paper="-", source="-", year=2026, colour="red")', "colour"),
        (
            '@register("mine", name="Mine", kind="text", paper="-", source="-", year=2026, recipe=Recipe(rate=1))',
            "rate",
        ),
        (
            '@register("mine", name="Mine", kind="text", paper="-", source="-", year=2026, deviations=("No dropout."))',
            "deviations is one text",
        ),
    ],
)
def test_arguments_that_are_missing_or_unknown_are_said_by_the_listing(plugin, decorator, wrong):
    """`archbench list` must not crash on a decorator that Python would refuse, nor offer what
    cannot be loaded."""
    file = plugin(f"from harness.registry import Recipe, register\n\n{decorator}\nclass Mine:\n    pass\n")
    error = left_out(file)
    assert wrong in error and f"{file}:3" in error


WHOLE = {"name": '"Mine"', "kind": '"text"', "paper": '"-"', "source": '"-"', "year": "2026"}


@pytest.mark.parametrize(
    ("field", "given", "wrong"),
    [
        ("year", '"2026"', "mine: year is '2026', expected int"),
        ("year", "True", "mine: year is True, expected int"),
        ("name", "7", "mine: name is 7, expected str"),
        ("sees", '(1, "texts")', "mine: sees is (1, 'texts'), expected tuple[str, ...]"),
        ("tiny", '["hidden", 3]', "mine: tiny is ['hidden', 3], expected dict[str, Any]"),
        ("recipe", '{"lr": 0.1}', "mine: recipe is {'lr': 0.1}, expected Recipe"),
        ("recipes", '{"text": 0.1}', "mine: recipes is {'text': 0.1}, expected dict[str, Recipe]"),
        ("vectors_of_paper", "3", "mine: vectors_of_paper is 3, expected str | None"),
        ("variants", '["wide"]', "mine: variants is ['wide'], expected a dict of options by id"),
        ("variants", '{"wide": {"year": "2026"}}', "wide: year is '2026', expected int"),
        ("variants", '{"wide": {"sees": "texts"}}', "wide: sees is one text"),
        ("recipe", 'Recipe(epochs="ten")', "Recipe: epochs is 'ten', expected int"),
        ("recipe", "Recipe(betas=(0.9,))", "Recipe: betas is (0.9,), expected tuple[float, float] | None"),
        ("recipe", "Recipe(epoch=10)", "Recipe: there is no epoch; did you mean epochs"),
        ("recipe", 'Recipe(optimizer="adan")', "Recipe: training.optimizer: 'adan' is none of adam, "),
        ("recipe", "Recipe(lr=RATE)", "RATE is no literal"),
        ("recipe", "Recipe(**FAST)", "**FAST is no literal"),
        ("tiny", '{"hidden": WIDTH}', "WIDTH is no literal"),
    ],
)
def test_a_value_that_a_field_cannot_have_is_named_and_the_rest_works(plugin, field, given, wrong):
    """A year that was a text stopped the whole leaderboard, and every fault in a recipe was told as
    that of a literal."""
    values = ", ".join(f"{name}={value}" for name, value in (WHOLE | {field: given}).items())
    file = plugin(
        f'from harness.registry import Recipe, register\n\n@register("mine", {values})\nclass Mine:\n    pass\n'
    )
    assert f"{file}:3: @register: {wrong}" in left_out(file)


def test_a_list_and_a_whole_number_stand_for_a_tuple_and_a_fraction(plugin):
    values = ", ".join(f"{name}={value}" for name, value in WHOLE.items())
    variants = 'variants={"wide": {"sees": ["texts"], "deviations": ["Wide."]}}'
    given = f'"mine", {values}, sees=["texts"], recipe=Recipe(lr=1, clip=None), {variants}'
    file = plugin(f"from harness.registry import Recipe, register\n\n@register({given})\nclass Mine:\n    pass\n")
    mine, wide = registry.declared(file)
    assert mine.sees == wide.sees == ("texts",) and wide.deviations == ("Wide.",)
    assert {mine: mine.recipe.lr} == {mine: 1}


@pytest.mark.parametrize(
    ("kind", "base", "wrong"),
    [
        ("text", "Estimator", "is derived from Estimator: expected fit or floor"),
        ("fit", "TextEncoder", "is derived from TextEncoder: expected text"),
        ("plm", "Regime", "is derived from Regime: expected regime"),
        ("tag", "TreeEncoder", "is derived from TextEncoder and TreeEncoder: expected"),
        ("floor", "Estimator", None),
        ("pair", "PretrainedEncoder", None),
        ("seq", "AudioEncoder", None),
        ("text", "Encoder", None),
    ],
)
def test_a_kind_that_is_not_that_of_the_class_is_named(plugin, kind, base, wrong):
    """Such a plugin was listed, timed and drawn as what it is not."""
    text = (
        PLUGIN.format(id="mine").replace('kind="text"', f'kind="{kind}"').replace("class Mine", f"class Mine({base})")
    )
    file = plugin(f"from harness.kinds import {base}\n{text}")
    entry = registry.entry("architectures", "mine")
    if wrong is None:
        assert registry.load(entry).__name__ == "Mine"
        return
    with pytest.raises(RegistryError) as error:
        registry.load(entry)
    assert f"{file}: mine has kind {kind!r}, and its class Mine {wrong}" in str(error.value)


@pytest.mark.parametrize("content", [b"class Mine(:\n", "# caf\xe9\n".encode("latin-1"), b"x = 1\0\n"])
def test_a_plugin_that_is_no_python_is_named(plugin, content):
    """A syntax error, another encoding, a binary file."""
    file = plugin()
    file.write_bytes(content)
    assert str(file) in left_out(file)


def test_a_ring_of_budgets_is_named(plugin):
    """A decorator that was copied names its own task: the run ended in a RecursionError."""
    text = """
from harness.registry import register_task
from harness.task import Task

@register_task("{id}", name="x", type="classify", metrics=("accuracy",), main_metric="accuracy",
               sizes={{}}, epochs=1, protocol="made for a test", budgets="{other}")
class Ring(Task):
    pass
"""
    plugin(text.format(id="ring_a", other="ring_b"), "a.py")
    plugin(text.format(id="ring_b", other="ring_a"), "b.py")
    with pytest.raises(
        RegistryError, match=r"a\.py: budgets='ring_b' of ring_a leads back|budgets='ring_a' of ring_b leads"
    ):
        registry.budgets_of(registry.entry("tasks", "ring_a"))


def test_a_plugin_may_begin_with_a_byte_order_mark(plugin):
    """Some editors write one, and Python runs the file."""
    file = plugin(PLUGIN.format(id="mine"))
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert registry.load(registry.entry("architectures", "mine")).__name__ == "Mine"


def test_a_plugin_that_fails_to_import_is_named_and_the_rest_works(plugin):
    file = plugin("import no_such_module\n" + PLUGIN.format(id="mine"))
    with pytest.raises(RegistryError, match="no_such_module") as error:
        registry.load(registry.entry("architectures", "mine"))
    assert str(file) in str(error.value)
    registry.load(registry.entry("architectures", "dan"))


def test_a_plugin_that_exits_when_imported_is_named_and_the_rest_works(plugin):
    """A script with an unguarded `sys.exit(main())` ended the whole program, with success."""
    file = plugin("import sys\n" + PLUGIN.format(id="mine") + "\nsys.exit(0)\n")
    with pytest.raises(RegistryError, match="SystemExit: 0") as error:
        registry.load(registry.entry("architectures", "mine"))
    assert str(file) in str(error.value) and file in registry.broken("architectures")
    registry.load(registry.entry("architectures", "dan"))


def test_a_plugin_without_the_class_that_it_declares_is_named(plugin):
    file = plugin(PLUGIN.format(id="mine") + "\ndel Mine\n")
    with pytest.raises(RegistryError, match="no attribute 'Mine'") as error:
        registry.load(registry.entry("architectures", "mine"))
    assert str(file) in str(error.value)


def test_ctrl_c_ends_an_import(plugin):
    """Only the plugin's own doings are its fault."""
    plugin("raise KeyboardInterrupt\n" + PLUGIN.format(id="mine"))
    with pytest.raises(KeyboardInterrupt):
        registry.load(registry.entry("architectures", "mine"))


def test_an_import_that_takes_long_is_named_while_it_goes_on(plugin, monkeypatch, capsys):
    """No limit of a cell ends it: its user must learn what is waited for."""
    monkeypatch.setattr(finding, "PATIENCE", 0.05)
    slow = plugin("import time\ntime.sleep(0.5)\n" + PLUGIN.format(id="mine"), "slow.py")
    quick = plugin(PLUGIN.format(id="mine_too").replace("class Mine", "class Too"), "quick.py")
    for id in ("mine", "mine_too"):
        registry.load(registry.entry("architectures", id))
    message = capsys.readouterr().err
    assert f"importing {slow}" in message and str(quick) not in message


def test_a_class_that_is_there_is_not_waited_for(plugin, monkeypatch):
    """A plan asks for the same classes with every cell: a timer each time took most of its time."""
    plugin(PLUGIN.format(id="mine"))
    entries = registry.entry("architectures", "mine"), registry.entry("architectures", "dan")
    classes = [registry.load(entry) for entry in entries]
    monkeypatch.setattr(finding, "said_when_slow", pytest.fail)
    assert [registry.load(entry) for entry in entries] == classes


def test_an_unknown_name_names_the_files_that_failed_to_import(plugin):
    """The name that is missed may well stand in such a file."""
    file = plugin("import no_such_module\n" + PLUGIN.format(id="mine"))
    with pytest.raises(RegistryError):
        registry.load(registry.entry("architectures", "mine"))
    with pytest.raises(UnknownName) as error:
        registry.entry("architectures", "mien_too")
    assert str(file) in str(error.value) and "no_such_module" in str(error.value)
    assert file in registry.broken("architectures")


def test_a_failed_import_can_be_repaired_and_tried_again(plugin):
    """No half-imported module may stay behind."""
    file = plugin("import no_such_module\n" + PLUGIN.format(id="mine"))
    entry = registry.entry("architectures", "mine")
    with pytest.raises(RegistryError):
        registry.load(entry)
    file.write_text(PLUGIN.format(id="mine") + "# repaired\n")
    assert registry.load(entry).__name__ == "Mine"


# --- entry points of other packages ---


def test_an_installed_package_adds_an_architecture(installed):
    folder = installed({"toyplugin_a.py": PLUGIN.format(id="theirs")}, "toyplugin_a")
    entry = registry.entry("architectures", "theirs")
    assert entry.file == folder / "toyplugin_a.py"
    assert registry.load(entry).__name__ == "Mine"
    assert "theirs" not in registry.entries("tasks")


def test_a_module_of_a_package_may_import_its_neighbours(installed):
    """That is how a package of several models shares its layers."""
    files = {
        "toyplugin_b/__init__.py": "",
        "toyplugin_b/layers.py": "SIZE = 3\n",
        "toyplugin_b/model.py": "from .layers import SIZE\n" + PLUGIN.format(id="theirs"),
    }
    installed(files, "toyplugin_b.model")
    assert registry.load(registry.entry("architectures", "theirs")).__name__ == "Mine"


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"toyplugin_c/__init__.py": "raise RuntimeError('not on this machine')", "toyplugin_c/model.py": ""},
        {"toyplugin_c/__init__.py": "", "toyplugin_c/model.py": "class Mine(:\n"},
        {"toyplugin_c/__init__.py": "raise SystemExit(0)", "toyplugin_c/model.py": ""},
    ],
    ids=["gone", "package raises", "syntax error", "package exits"],
)
def test_a_broken_entry_point_is_named_and_everything_else_is_listed(installed, files):
    """A package somebody installed once must not stop `archbench list` for good."""
    installed(files, "toyplugin_c.model")
    assert "dan" in registry.entries("architectures")
    with pytest.raises(UnknownName, match="toyplugin_c"):
        registry.entry("architectures", "theirs")


# --- listing is light ---


def test_a_listing_imports_neither_torch_nor_any_plugin(tmp_path):
    """`archbench list` answers at once, and on a machine where a plugin cannot be imported."""
    plugin = tmp_path / "loud.py"
    plugin.write_text("raise SystemExit('imported')\n" + PLUGIN.format(id="loud"))
    code = (
        f"import sys\nfrom harness import registry\nregistry.add_plugin({str(plugin)!r})\nfound ="
        " registry.entries('architectures')\nassert 'loud' in found and len(found) > 10 and"
        " registry.entries('tasks')\nassert registry.match('architectures', 'loud')\nprint(*({'torch', 'numpy',"
        " 'pandas', 'datasets'} | {m for m in sys.modules if m.startswith(('tasks.', 'architectures.'))}) &"
        " set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


def test_every_built_in_file_registers_something():
    """A file without a decorator, or with one that the listing does not see, would silently be
    missing from the grid."""
    sorts: tuple[registry.Sort, ...] = ("architectures", "inputs", "tasks")
    listed = {entry.file for sort in sorts for entry in registry.entries(sort).values()}
    for sort in sorts:
        assert registry.broken(sort) == {}
        assert set(finding.files_of(sort)) <= listed


def test_variants_are_listed_as_they_are_registered(plugin):
    """A variant that is listed with its base's settings would be run as its base."""
    variants = 'variants={"mine_wide": {"name": "Mine, wide", "hyperparameters": {"hidden": 9}}}'
    plugin(PLUGIN.format(id="mine").replace("year=2026", f"year=2026, {variants}", 1))
    found = registry.entries("architectures")
    registry.load(found["mine"])
    assert found["mine_wide"].hyperparameters == {"hidden": 9} and found["mine_wide"].paper == found["mine"].paper
    for id in ("mine", "mine_wide"):
        assert dict(found[id].options) == registry.registered("architectures", id)


def test_a_variant_adds_its_deviations_to_those_it_does_not_leave_out(plugin):
    """A copied list would go out of date, and a lost sentence would hide a difference from the
    paper."""
    own = '"recipe": Recipe(lr=0.5), "without_deviations": ("No drop",), "deviations": ("Wide.",)'
    both = f'deviations=("No dropout.", "Small."), variants={{"mine_wide": {{{own}}}, "mine_too": {{}}}}'
    plugin(PLUGIN.format(id="mine").replace("year=2026", f"year=2026, {both}", 1))
    found = registry.entries("architectures")
    registry.load(found["mine"])
    assert found["mine_wide"].deviations == ("Small.", "Wide.") and found["mine_wide"].recipe == Recipe(lr=0.5)
    assert found["mine_too"].deviations == found["mine"].deviations == ("No dropout.", "Small.")
    for id in ("mine", "mine_wide", "mine_too"):
        assert dict(found[id].options) == registry.registered("architectures", id)


@pytest.mark.parametrize(("beginning", "found"), [("No dropout.", "no deviation"), ("No ", "several deviations")])
def test_a_variant_that_leaves_out_a_sentence_that_is_not_there_is_named(plugin, beginning, found):
    """The base's sentence was reworded: the variant would claim it again without a word."""
    base = 'deviations=("No dropout at all.", "No clipping.")'
    own = f'{base}, variants={{"mine_wide": {{"without_deviations": ("{beginning}",)}}}}'
    file = plugin(PLUGIN.format(id="mine").replace("year=2026", f"year=2026, {own}", 1))
    assert "mine_wide" in left_out(file) and f"mine has {found} {beginning!r}" in left_out(file)


def test_a_variant_that_changes_what_there_is_not_is_named(plugin):
    file = plugin(PLUGIN.format(id="mine").replace("year=2026", 'year=2026, variants={"mine_wide": {"hiden": 9}}', 1))
    assert "mine_wide" in left_out(file) and "hiden" in left_out(file)
