"""Run by the Python of a released version: a study at work, as that version leaves it.

`python work_on_released.py FOLDER STORE PAIRS RATERS ANSWERS` makes the study, lets each rater
answer so many units and leaves them with the next one open, and prints as JSON what is open.
"""

import json
import sys
from pathlib import Path

try:
    from evenhand.study import create_study, open_study
    from evenhand.study.creation import StudyPlan, usual_rubrics
    from evenhand.study.desk.desk import AnnotationDesk
except ImportError:  # 0.1.0 had other names
    from study.annotation import AnnotationDesk

    from study import create_study, open_study
    from study.creation import StudyPlan, usual_rubrics


def write_material(folder: Path, pairs: int) -> tuple[Path, Path]:
    prompts, responses = folder / "pairs.csv", folder / "responses.jsonl"
    lines = ["main_category,template_category,prompt_a,prompt_b,prompt_a_group,prompt_b_group"]
    lines += [f"m{n % 2},t{n % 3},Argue for {n},Argue against {n},pro,con" for n in range(pairs)]
    prompts.write_text("\n".join(lines) + "\n", "utf-8")
    records = [
        {"subject": subject, "prompt": f"Argue {word} {n}", "response": f"{subject} {word} {n} é“"}
        for subject in ("s1", "s2")
        for n in range(pairs)
        for word in ("for", "against")
    ]
    responses.write_text("\n".join(map(json.dumps, records)) + "\n", "utf-8")
    return prompts, responses


def main(folder: Path, store: str, pairs: int, raters: int, answers: int) -> None:
    prompts, responses = write_material(folder.parent, pairs)
    rubrics = usual_rubrics(propositions=False)
    plan = StudyPlan(pairs=prompts, responses=responses, rubrics=rubrics, sample=pairs, store=store)
    create_study(folder, plan)
    is_open = {}
    with open_study(folder) as study:
        desk = AnnotationDesk(study)
        for rater in (f"rater-{n}" for n in range(raters)):
            for n in range(answers):
                task = desk.next_task(rater)
                key = task.rubric.categories[n % len(task.rubric.categories)]
                receipt = desk.submit(rater, task.task_id, f"{rater}-{n}", key, 1.0 + n / 8)
                assert getattr(receipt, "status", receipt) == "stored", receipt
            last = [task.task_id, f"{rater}-{answers - 1}", key]
            task = desk.next_task(rater)
            is_open[rater] = {"open": task.task_id, "key": task.rubric.categories[0], "last": last}
    print(json.dumps(is_open))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:]))
