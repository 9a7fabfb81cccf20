"""Registered architectures, tasks and problems, found without importing them and loaded one at a
time.

A plugin is one Python file. Its classes carry ``@register(...)`` (an architecture) or
``@register_task(...)`` (a task) with literal arguments, so that a listing can be read from the
source text with :mod:`ast`: ``archbench list`` needs neither torch nor the plugin's own imports.
Loading imports the one file that holds the wanted name.

From below to above: ``sorts`` (what can be registered), ``finding`` (files), ``source_text``
(decorators in a file), ``declarations`` (entries of these), ``loading`` (import) and ``lookup``
(by name).
"""

from harness.errors import RegistryError, UnknownName
from harness.registry.declarations import (
    check_plugins,
    declared,
    entries,
    register,
    register_input,
    register_metric,
    register_problem,
    register_task,
    registered,
    registered_in,
    unlisted,
)
from harness.registry.finding import (
    DESCRIPTION,
    TaskSource,
    add_plugin,
    distribution,
    offer_tasks,
    plugin_files,
    remove_plugin,
)
from harness.registry.loading import broken, import_other_plugins, load
from harness.registry.lookup import budgets_of, comma_separated, entry, match, tasks_to_check_on, unknown_name
from harness.registry.sorts import (
    KINDS,
    TASK_TYPES,
    ArchitectureEntry,
    Entry,
    InputEntry,
    MetricEntry,
    ProblemEntry,
    Sort,
    TaskEntry,
)
from harness.registry.source_text import is_decorator
from harness.settings import Budget, Recipe

__all__ = [
    "DESCRIPTION",
    "KINDS",
    "TASK_TYPES",
    "ArchitectureEntry",
    "Budget",
    "Entry",
    "InputEntry",
    "MetricEntry",
    "ProblemEntry",
    "Recipe",
    "RegistryError",
    "Sort",
    "TaskEntry",
    "TaskSource",
    "UnknownName",
    "add_plugin",
    "broken",
    "budgets_of",
    "check_plugins",
    "comma_separated",
    "declared",
    "distribution",
    "entries",
    "entry",
    "import_other_plugins",
    "is_decorator",
    "load",
    "match",
    "offer_tasks",
    "plugin_files",
    "register",
    "register_input",
    "register_metric",
    "register_problem",
    "register_task",
    "registered",
    "registered_in",
    "remove_plugin",
    "tasks_to_check_on",
    "unknown_name",
    "unlisted",
]
