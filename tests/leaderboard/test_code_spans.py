"""Names between backquotes are code on pages and in Markdown, and nothing else of a text is."""

from __future__ import annotations

import markdown_it

from harness.leaderboard.pages.page import prose, templates
from harness.leaderboard.tables.table import Table, markdown

MEAN = "`a|b` <b>x</b> ``c_d`` e*f* `"


def test_names_are_code_and_markup_is_text():
    """A command in a note is to be copied; a plugin's text must not change the page."""
    wanted = "<code>a|b</code> &lt;b&gt;x&lt;/b&gt; <code>c_d</code> e*f* `"
    assert prose(MEAN) == wanted
    assert templates().from_string("{{ text | prose }}").render(text=MEAN) == wanted


def test_markdown_has_the_same_code():
    """`results/gaps.md` is read on pages of repositories."""
    parser = markdown_it.MarkdownIt("commonmark")
    assert "<code>a</code> &lt;b&gt; c_d" in parser.render(markdown("t", ["`a` <b> c_d"], []))


def test_a_bar_in_code_ends_no_cell():
    parser = markdown_it.MarkdownIt("commonmark").enable("table")
    table = Table("t", "T", ["name", "`a|b`"], [])
    assert "<code>a|b</code></th>" in parser.render(markdown("t", [], [table]))
