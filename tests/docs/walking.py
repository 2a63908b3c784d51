# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of a page on a stage: a machine with engines, or a cluster."""
import os
import pathlib
import signal
import subprocess
import tempfile

from walkthrough import Page, matches


def walk(page: Page, stage, lane) -> None:
    """A page ends at the first command with an unexpected status, because the following ones depend on it."""
    stage.turn_page(page)
    for step in page.steps:
        if step.machine:
            stage.enter(step.machine)
            continue
        where = f"{page.path.name}:{step.line}: {step.script.splitlines()[0]}"
        ran = stage.run(step.script)
        output = stage.plain(ran.stdout)
        right = (ran.returncode != 0) == step.fails
        lane.check(where, right, f"status {ran.returncode}\n{output}")
        if not right:
            break
        if step.expected is not None:
            lane.check(f"{where}: shows what the page shows", matches(step.expected, output), f"{output}")
    lane.equal(f"{page.path.name}: its own count is right", str(page.said), str(page.count()))


def run_script(script: str, desk: pathlib.Path, environment: dict[str, str], seconds: int) -> subprocess.CompletedProcess:
    """Output goes to a file: a process that a command leaves in the background could hold a pipe open."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(["bash", "-e", "-o", "pipefail", "-c", script], cwd=desk, env=environment,
                                   stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            output.write(f"\nended after {seconds} seconds\n")
            status = 124
        output.seek(0)
        return subprocess.CompletedProcess(script, status, output.read())
