"""Export the result of DeepEval's `evaluate`, and the test run that it stores."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from harness.exports.contents import (
    ANSWERS,
    DOCUMENTS,
    GPT,
    GRADER,
    JUDGED,
    QUESTIONS,
    TRUE,
    UNITS,
    write_json,
)


def make(out: Path) -> None:
    os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"
    os.chdir(out)
    from deepeval import evaluate
    from deepeval.metrics import BaseMetric
    from deepeval.test_case import LLMTestCase

    good = {unit for unit, said in zip(UNITS, GPT, strict=True) if said == "y"}
    asked = [f"q{number}" for number in range(1, 5)]
    good |= {name for name, said in zip(asked, JUDGED, strict=True) if said == "yes"}

    class Fair(BaseMetric):
        threshold = 0.5
        evaluation_model: str | None = GRADER
        __name__ = "Fair"

        def measure(self, case: Any, *_: Any, **__: Any) -> float:
            self.score = 1.0 if case.name in good else 0.25
            self.success = self.score >= self.threshold
            self.reason = "read"
            return self.score

        async def a_measure(self, case: Any, *_: Any, **__: Any) -> float:
            return self.measure(case)

        def is_successful(self) -> bool:
            return bool(self.success)

    class Length(Fair):
        evaluation_model = None
        __name__ = "Length"

    cases = [LLMTestCase(input=unit, actual_output="42", name=unit) for unit in UNITS]
    found = evaluate(cases, [Fair(), Length()])
    write_json(out / "deepeval.json", found.model_dump(mode="json", by_alias=True))
    run = out / ".deepeval" / ".latest_test_run.json"
    if run.exists():
        (out / "deepeval_run.json").write_bytes(run.read_bytes())
    items = [
        LLMTestCase(
            input=question,
            actual_output=answer,
            expected_output=true,
            retrieval_context=DOCUMENTS,
            name=name,
        )
        for name, question, answer, true in zip(asked, QUESTIONS, ANSWERS, TRUE, strict=True)
    ]
    found = evaluate(items, [Fair()])
    write_json(out / "items" / "deepeval.json", found.model_dump(mode="json", by_alias=True))
    shutil.rmtree(out / ".deepeval", ignore_errors=True)
