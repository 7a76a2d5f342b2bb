"""``onlooker completion``: what a shell needs to complete commands and options."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that makes SHELL complete commands and options by the tab key.

    \b
    Example:
      onlooker completion bash >> ~/.bashrc
      onlooker completion zsh >> ~/.zshrc
      onlooker completion fish > ~/.config/fish/completions/onlooker.fish
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    root = click.get_current_context().find_root().command
    click.echo(made(root, {}, "onlooker", "_ONLOOKER_COMPLETE").source())
