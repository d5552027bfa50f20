"""A Vulkan device for a simulator that was just installed: the system's, or one that is fetched."""

from __future__ import annotations

from zetta.runtime.cli import output, vulkan
from zetta.runtime.cli.sims_check import device
from zetta.runtime.cli.sims_venv import Venv
from zetta.runtime.errors import ZettaError


def bring_device(venv: Venv) -> None:
    """Fetch a Vulkan device where the simulator needs one and finds none; say how it went.

    The installation stands without it: what is missing is told by `zetta sims check`.
    """
    if venv.packages.draws_with != "vulkan" or device(venv).state == "ok":
        return
    try:
        place = vulkan.fetch()
    except ZettaError as error:
        output.note(f"no Vulkan device, and none could be fetched: {error}")
        return
    output.note(f"no Vulkan device here that draws; one was fetched into {place}")
