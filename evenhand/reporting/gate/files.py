"""The result of a gate as files for CI: JUnit XML for the list of tests, Markdown for a summary."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from evenhand.reporting.gate.checks import Gate
from evenhand.texts import written
from evenhand.visible import visible


def junit_xml(found: Gate) -> bytes:
    """Return a test case for each check: a failure if it is not met, an error if we cannot tell.

    >>> from evenhand.reporting.gate.checks import Check
    >>> found = Gate("r.csv", "g", (Check("kappa > 0 & < 1", "not_met", "no"),))
    >>> junit_xml(found).decode().splitlines()[0]
    "<?xml version='1.0' encoding='utf-8'?>"
    """
    outcomes = [each.outcome for each in found.checks]
    counts = {
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count("not_met")),
        "errors": str(outcomes.count("cannot_tell")),
    }
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "evenhand gate", **counts})
    for each in found.checks:
        about = {"classname": _xml(f"{found.source}, {found.grader}"), "name": _xml(each.name)}
        case = ElementTree.SubElement(suite, "testcase", about)
        if each.outcome != "met":
            tag = "failure" if each.outcome == "not_met" else "error"
            said = {"message": _xml(each.sentence), "type": each.outcome}
            ElementTree.SubElement(case, tag, said)
        else:
            ElementTree.SubElement(case, "system-out").text = _xml(each.sentence)
    if found.said:
        ElementTree.SubElement(suite, "system-out").text = _xml("\n".join(found.said))
    ElementTree.indent(suites)
    written_out: bytes = ElementTree.tostring(suites, "utf-8", xml_declaration=True)
    return written_out + b"\n"


def summary_markdown(found: Gate) -> str:
    """Return a heading and the sentences, fenced, so that names of raters and files are neither
    formatted nor read as mentions.
    """
    lines = [*(each.line for each in found.checks), *found.said]
    text = visible("\n".join(lines))
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    about = visible(written("gate.about", source=found.source, grader=found.grader))
    title = written(f"gate.title_{found.outcome}")
    return f"### {title}\n\n{fence}text\n{about}\n{text}\n{fence}\n"


def _xml(text: str) -> str:
    return visible(text)
