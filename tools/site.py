"""Pages of the documentation that are made from the program itself, or lie elsewhere in the
repository: a hook of mkdocs (``mkdocs.yml``)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.cli import get_docs_for_click

from harness.cli import app

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = "reference/commands.md"
ELSEWHERE = {
    "results/README.md": "results/README.md",
    "results/verdicts.md": "results/verdicts.md",
    "results/speed.md": "results/speed.md",
    "results/speed_scaling.svg": "results/speed_scaling.svg",
    "results/reliability.md": "results/reliability.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Files of the repository that belong to the site as well, with their place in it. Pages name them
as they lie, so that the links hold in a checkout too."""


def commands() -> str:
    """Every command with its options, as ``--help`` tells them."""
    group: Any = typer.main.get_command(app)
    context: Any = group.make_context("archbench", [], resilient_parsing=True)
    text = get_docs_for_click(obj=group, ctx=context, name="archbench", title="Commands")
    # What a terminal shows line by line is a block of code here.
    return re.sub(r"^\\b\n((?:.+\n)+)", r"```console\n\1```\n", text, flags=re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds these pages to those of ``docs/``."""
    files.append(File.generated(config, COMMANDS, content=commands()))
    for file, page in ELSEWHERE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / file)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """A page's text, in which links to files elsewhere lead to their places in the site."""
    up = "../" * page.file.src_uri.count("/")
    for file, place in ELSEWHERE.items():
        markdown = markdown.replace(f"](../{up}{file})", f"]({up}{place})")
    # Of the files elsewhere themselves.
    return markdown.replace("](docs/", f"]({up}")


def on_page_content(html: str, **_: Any) -> str:
    """A page without the roles of docstrings, such as ``:class:``, of which the last name is
    left where a tilde asks for that."""
    return re.sub(r":(?:class|data|exc|func|meth|mod):<code>(?:~[\w.]*\.)?([^<]*)</code>", r"<code>\1</code>", html)
