"""Web pages: what a reader sees, wrong nesting, and that any text is read in time and covered by its blocks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from test_documents import check_blocks
from webpage import Page

# -- HTML --------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("html, text", [
    ("a &lt; b &amp; c &#x41; &hearts; &nosuch; &", "a < b & c A ♥ &nosuch; &"), ("a < b > c", "a < b > c"),
    ("<p>one<p>two", "one\n\ntwo"), ("</ul></p></table>x</h1>", "x"), ("<b><i>a</b>b</i>", "ab"), ("<li>a<li>b", "- a\n- b"),
    ("<noscript>no</noscript><template><p>no</template>yes", "yes"), ("x<!-- open <p>kept", "x open\n\nkept"), ("x<!-->y<!--->z", "xyz"),
    ("a<![if x]>b<![CDATA[c]]>d<?php e ?>f<!x>g", "abd" "fg"), ("a<![", "a<!["), ("a <b", "a <b"), ("x</", "x</"),
    ("<table><tr><td>a<table><tr><td>b<td>c</table>d<td>e</table>f", "a b c d | e\n\nf"), ("<td>a<td>b", "a\n\nb"),
    ("<table><tr><td>a<h2>H</h2><td>b</table>", "a\n\nH\n\nb"), ("<ul><li><h2>H</h2>x<li>y</ul>z", "H\n\nx\n\n- y\n\nz"),
    ("<table>loose<tr><td><ul><li>a<li>b</ul><p>c</table>", "loose\na b c"), ("<pre>a\n\n<b>b</b>\n</pre>c", "a\n\nb\n\nc"),
    ("<ul><li>a<pre>x\n  y</pre><li>b</ul>", "- a\nx\n  y\n- b"), ("<blockquote><p>a<p>b<ul><li>c</ul></blockquote>", "a\nb\n  - c"),
    ("<ol><li>a<ul><li>b</ul><li>c</ol>", "1. a\n  - b\n2. c"), ("a\0b", "a\ufffdb"), ("<h1></h1><p>a", "a"), ("a<pre> \n</pre>", "a"), ("<title>T", ""),
    ("<pre>a\r\nb", "a\nb"), ("<p title='>'>x</p>", "x"), ("<svg><title>t</title></svg>x", "x"), ("<TABLE><TR><TH>A</TABLE>", "A\n---"),
    ("<table><tr><td>a<tr><th>b</table>", "a\nb"),
])
def test_text_of_html(html, text):
    assert Page(html).text == text


def test_the_title_is_the_first():
    page = Page("<title>A</title><svg><title>plot</title></svg>")
    assert (page.title, page.text) == ("A", "plot")


TAGS = ["p", "h1", "h3", "ul", "ol", "li", "table", "tr", "td", "th", "caption", "pre", "blockquote", "b", "script", "title", "br",
        "template", "div"]


@settings(max_examples=200)
@given(st.lists(st.one_of(st.sampled_from([f"<{slash}{tag}>" for tag in TAGS for slash in ("", "/")]), st.sampled_from(
    ["word", " ", "\n", "<!--", "-->", "<![", "&amp", "&lt;", "<", ">", '<a b="', "é", "\u2028", "\x0c", "\r", "<p/>"])), max_size=25))
def test_any_html_has_blocks_that_cover_its_text(tokens):
    page = Page("".join(tokens))
    check_blocks(page.text, page.blocks)


@pytest.mark.parametrize("text", ["<a " * 50_000, "<!--" * 50_000, "<!-- > " * 20_000, "<ul>" * 5_000 + "<li>a" * 5_000, "<![" * 50_000,
                                  "<td" * 50_000, "&" * 100_000, "<p>" * 20_000, "<ul>" * 20_000 + "</ol>" * 20_000])
def test_large_and_odd_pages_are_read_too(text):
    page = Page(text)
    check_blocks(page.text, page.blocks)
