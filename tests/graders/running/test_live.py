from __future__ import annotations

import anyio

from evenhand.graders.failures import Transient
from evenhand.graders.running.live import Throttle


def test_the_limit_falls_once_per_round_and_rises_again() -> None:
    limits: list[int] = []

    async def main() -> None:
        throttle = Throttle(8)

        async def busy(all_started: anyio.Event) -> None:
            try:
                async with throttle.slot():
                    await all_started.wait()
                    raise Transient("busy", status=429)
            except Transient:
                pass

        started = anyio.Event()
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(busy, started)
            await anyio.sleep(0.01)
            started.set()
        limits.append(throttle.limit)  # eight refusals of one round: one fall, 8 -> 6
        for _ in range(6):
            async with throttle.slot():
                pass
        limits.append(throttle.limit)  # six replies: one more
        for _ in range(100):
            async with throttle.slot():
                pass
        limits.append(throttle.limit)  # never above where it began

    anyio.run(main)
    assert limits == [6, 7, 8]


def test_the_limit_never_falls_below_one_and_other_faults_leave_it() -> None:
    async def main() -> int:
        throttle = Throttle(3)
        for status in [500, None, 429, 429, 429, 429]:
            try:
                async with throttle.slot():
                    raise Transient("no", status=status)
            except Transient:
                pass
        return throttle.limit

    assert anyio.run(main) == 1
