"""From a file, or another library's log, to tracks of states."""
