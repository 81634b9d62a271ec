"""Texts as HTML on the pages around the panel."""

from __future__ import annotations

import re

from evenhand.annotate_app.drawn import drawn_block, drawn_text
from evenhand.annotate_app.languages import ENGLISH
from evenhand.rubrics.rendering import TextBlock


def test_each_part_of_a_text_runs_as_what_it_holds():
    text = "- *שלום*\n- so\n\n> أهلا\n\n1. so\n\n   - שלום\n\n| שלום | a |\n| - | - |\n| b | c |"
    found = re.findall(r'<(?:div|ul|ol|blockquote|table)\b[^>]* dir="(\w+)"', drawn_text(text))
    assert found == ["rtl", "rtl", "rtl", "ltr", "rtl", "rtl"]
    assert 'dir="ltr"' in drawn_text("plain *words*, 1. שלום")


def test_a_text_without_a_word_says_so():
    nothing = TextBlock("Response", "response", "response", "", " \n")
    for display in ("text", "markdown"):
        assert "(empty response)" in drawn_block(nothing, ENGLISH, display)


def test_an_image_is_its_description_in_the_texts_language():
    assert '<span class="image">[image: a cat]</span>' in drawn_text("![a cat](http://b)")
    assert "[Bild: eine Katze]" in drawn_text("![eine Katze](http://b)", lang="de")
