"""The commands, one a file. Each imports what it needs when it runs: `--help` stays quick."""
