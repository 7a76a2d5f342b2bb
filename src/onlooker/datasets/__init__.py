"""Real tracks that ship with the package; README.md beside this file gives the credits."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import TYPE_CHECKING, NamedTuple

from onlooker.demonstrations import Demonstrations

if TYPE_CHECKING:
    import pandas as pd

    from onlooker.reading.tracks import Gaps

__all__ = ["Storms", "load_storms"]


class Storms(NamedTuple):
    """Tracks of storms."""

    demos: Demonstrations
    """Longitude and latitude in degrees, every six hours; `names` such as "Lenny 1999", `times`."""
    frame: pd.DataFrame
    """All fixes as they were read, with wind (knots), pressure (hPa) and status."""


def load_storms(*, gaps: Gaps = "split") -> Storms:
    """Atlantic storms from 1975 to 2022: 654 tracks with 19,054 fixes six hours apart.

    From HURDAT2 of the NOAA National Hurricane Center, through the ``storms`` table of dplyr.

    Parameters
    ----------
    gaps
        What to do where fixes are missing (84 times, of 6 hours to 3 days): ``"split"`` the track,
        whose pieces share its name (68 fixes that are then alone are left out, one storm with
        them), or any other choice of `onlooker.reading.Cleaning`.

    Examples
    --------
    >>> storms = load_storms()
    >>> len(set(storms.demos.names)), storms.demos.n_transitions
    (653, 18316)
    """
    import pandas as pd

    with as_file(files(__name__) / "storms_6h.csv.gz") as path:
        frame = pd.read_csv(path, parse_dates=["time"])
    years = frame.groupby("storm")["time"].transform("min").dt.year
    frame.insert(2, "label", frame["name"] + " " + years.astype(str))
    demos = Demonstrations.from_dataframe(
        frame, ["lon", "lat"], "label", "time", gaps=gaps, periodic={"lon": 360.0}
    )
    return Storms(demos, frame)
