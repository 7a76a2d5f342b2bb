"""From a file, or another library's log, to tracks of states."""

from onlooker.reading.tracks import Cleaning, CleaningOptions, ReadingSummary, Tracks

__all__ = ["Cleaning", "CleaningOptions", "ReadingSummary", "Tracks"]
