"""All commands as one tree, of which only what is wanted is imported."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, TypeAlias, cast

import typer
from typer.core import TyperCommand, TyperGroup

from zetta.runtime.cli.completion import complete_values
from zetta.runtime.cli.help import PageCommand, PageGroup

Command: TypeAlias = "TyperCommand | TyperGroup"
USAGE_ERROR: Final = cast(type[Exception], typer.BadParameter.__mro__[1])
"""What is raised for every wrong use; it has no name in typer that all versions share."""


class OnDemand(PageGroup):
    """Commands of which one is imported when it is wanted, and none to be named."""

    @abstractmethod
    def said(self) -> Mapping[str, str]:
        """Return the commands of the help, and what each does."""

    @abstractmethod
    def load(self, name: str) -> Command | None:
        """Import a command; None for an unknown one."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names for the help."""
        del ctx
        return list(self.said())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; an unknown one is wrong usage, and the nearest is suggested."""
        self.commands = {name: _only_named(name, said) for name, said in self.said().items()}
        return self.load(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the names and what each does."""
        _only_names(self.said()).format_commands(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete a name or an option."""
        group = _only_names(self.said(), self.params)
        return group.shell_complete(typer.Context(group), incomplete)


class Root(OnDemand):
    """`zetta` itself."""

    def __init__(self, verbs: Mapping[str, str], alone: Sequence[str] = ()) -> None:
        """Take the verbs and what each does, and the options that stand alone."""
        super().__init__(name="zetta", help="Make a frozen robot policy reliable.")
        self._verbs, self._alone = dict(verbs), dict.fromkeys(alone, "")

    def said(self) -> Mapping[str, str]:
        """Return the verbs."""
        return self._verbs

    def load(self, name: str) -> Command | None:
        """Import a verb."""
        return load(name, name, self._verbs[name]) if name in self._verbs else None

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete a verb, or an option that stands alone."""
        if not incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        group = _only_names(self._alone)
        return group.shell_complete(typer.Context(group), incomplete)


def load(module_name: str, name: str, said: str = "") -> Command:
    """Import a module of this folder and return its command.

    It has one as `command`, an undecorated function, or with commands of its own as `app`.
    """
    module = import_module(f"zetta.runtime.cli.{module_name}")
    if hasattr(module, "app"):
        _lay_out(module.app)
        made: Command = typer.main.get_group(module.app)
    else:
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name, cls=PageCommand, short_help=said or None)(module.command)
        made = typer.main.get_command(alone)  # type: ignore[assignment]  # one command: no group
    complete_values(made)
    return made


def walk(command: Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Yield a command and everything below it, each with its path; this imports all of them."""
    yield path, command
    if isinstance(command, TyperGroup):
        context = typer.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                yield from walk(cast(Command, found), (*path, name))


def leaves(command: Command) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command that does something, with its path; this imports all of them."""
    for path, each in walk(command):
        if not isinstance(each, TyperGroup) or each.invoke_without_command:
            yield path, each


def _lay_out(app: typer.Typer) -> None:
    """Give every command of an app our layout of help."""
    if not isinstance(app.info.cls, type) or not issubclass(app.info.cls, PageGroup):
        app.info.cls = PageGroup
    for each in app.registered_commands:
        each.cls = PageCommand
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _lay_out(group.typer_instance)


def _only_named(name: str, said: str) -> Any:
    return TyperCommand(name, help=said, short_help=said)


def _only_names(commands: Mapping[str, str], params: Any = None) -> TyperGroup:
    """Return a group that can be listed without importing anything."""
    named = {name: _only_named(name, said) for name, said in commands.items()}
    return TyperGroup(name="", commands=named, params=params)
