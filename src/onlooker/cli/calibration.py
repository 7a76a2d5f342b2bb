"""The nominal tracks that p-values of ``onlooker anomaly`` count on."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from onlooker import Demonstrations
from onlooker.anomaly import AnomalyScores, leave_out, score
from onlooker.anomaly.result import MIN_REFERENCE
from onlooker.fitting.run import notes
from onlooker.fitting.wording import as_option
from onlooker.reading.settings import Reading
from onlooker.reading.tracks import counted

if TYPE_CHECKING:
    from onlooker.findings.opened import OpenedRun

ENOUGH = 20  # tracks that allow p-values below 0.05


class Reader(NamedTuple):
    """Reads tracks as states of a run."""

    run: OpenedRun
    reading: Reading
    notify: Callable[[str], Any]

    def read(self, file: Path) -> Demonstrations:
        """The tracks of a file; steps from or to unseen states are left out."""
        with notes(self.notify):
            demos = Demonstrations.from_tracks(self.reading.read(file))
        if demos.reading is not None:
            self.notify(demos.reading.describe(as_option))
        if demos.has_unseen:
            self.notify("Steps from or to a state that was not seen are left out.")
            demos = demos.split()
        return self.run.with_features(demos)

    def seen(self, demos: Demonstrations) -> list[str]:
        """Names of tracks with exactly the states of one that the run was fitted to."""
        problem = self.run.posterior.problem
        if problem.paths is None:
            return []
        nodes, offsets = problem.paths.nodes, problem.paths.offsets
        bounds = itertools.pairwise(offsets)
        known = {problem.states[nodes[start:stop]].tobytes() for start, stop in bounds}
        pairs = zip(demos.names.tolist(), demos, strict=True)
        return [name for name, track in pairs if track.tobytes() in known]

    def note_seen(self, demos: Demonstrations) -> None:
        """Say which tracks the fit has seen."""
        seen = self.seen(demos)
        if seen:
            self.notify(
                f"Note: the run was fitted to {counted(len(seen), 'trajectory')} of the file "
                f"(such as {seen[0]!r}), which therefore looks more nominal than it is."
            )


def reference_scores(reader: Reader, file: Path | None, seed: int) -> AnomalyScores | None:
    """Scores of nominal tracks by chains that have not seen them; None where there are none."""
    posterior, notify = reader.run.posterior, reader.notify
    if file is not None:
        demos = reader.read(file)
        seen = reader.seen(demos)
        if seen:
            raise ValueError(
                f"--reference {file}: the run was fitted to {counted(len(seen), 'trajectory')} of "
                f"it (such as {seen[0]!r}); give tracks that it has not seen"
            )
        if len(demos) < MIN_REFERENCE:
            raise ValueError(
                f"--reference {file}: it holds {counted(len(demos), 'trajectory')}; {ENOUGH} allow "
                f"p-values below 0.05, {MIN_REFERENCE} are the least"
            )
        notify(f"P-values from {counted(len(demos), 'reference trajectory')} of {file}.")
        return score(posterior, demos, simulate=False, random_state=seed)
    aside = reader.run.held_out()
    nominal, by = None, []
    if aside is not None:
        nominal = score(posterior, aside, simulate=False, random_state=seed)
        by.append(f"{counted(len(nominal), 'trajectory')} that the fit set aside")
    if nominal is None or len(nominal) < ENOUGH:
        try:
            others = leave_out(posterior, random_state=seed, progress=True)
        except ValueError as error:
            if nominal is None:
                notify(
                    f"P-values are those of the model, which may be wrong: {error} (--reference)."
                )
                return None
        else:
            nominal = others if nominal is None else nominal.joined(others)
            n_others = counted(len(others), "trajectory")
            by.append(f"{n_others} of the fit, scored by short chains without them")
    notify(f"P-values from {' and '.join(by)}.")
    return nominal
