"""Pictures of logged ticks, drawn again; a process draws one world, so each has its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from zetta.runtime import registry
from zetta.runtime.cli import output
from zetta.runtime.cli.assemble import find_simulator, separate_world
from zetta.runtime.cli.graphics import choose_graphics
from zetta.runtime.core import Env, EnvSpec, Image
from zetta.runtime.episode_log import LoggedEpisode
from zetta.runtime.errors import ConfigError
from zetta.runtime.export.clips import Clip, World
from zetta.runtime.picture_sizes import PictureSize
from zetta.runtime.pictures import changed_versions, choose_cameras, drawn, moments_at


@dataclass(slots=True)
class DrawnAgain:
    """Draws clips one after the other, keeping the world of the last one."""

    cameras: tuple[str, ...]
    size: PictureSize | None = None
    """Of all pictures; None is the one that policies see."""
    render: str | None = None
    _env: Env | None = field(default=None, init=False)
    _world: World | None = field(default=None, init=False)
    _shown: str = field(default="", init=False)
    """Folder of the episode whose scene the world is in."""
    _warned: set[str] = field(default_factory=set, init=False)

    def __call__(self, clip: Clip, episode: LoggedEpisode) -> Iterator[Mapping[str, Image]]:
        """Yield the pictures before each tick of a clip.

        Raises:
            ConfigError: the log holds no poses, or there is no such camera.
            InfraError: the simulator is not usable here.
        """
        if episode.poses is None:
            raise ConfigError(no_pictures(clip))
        env = self._environment(clip.world)
        if self._shown != clip.folder:
            env.reset(episode.header.scene)  # a pose does not hold the fixtures
            self._compare(episode.header.spec, env.spec)
            self._shown = clip.folder
        cameras = choose_cameras(env.spec, self.cameras)
        chosen = moments_at(episode, range(clip.first, clip.first + clip.ticks))
        for _, images in drawn(env, episode, cameras, chosen, self.size):
            yield dict(zip(cameras, images, strict=True))

    def close(self) -> None:
        """Close the world; calling it again does nothing."""
        env, self._env, self._world, self._shown = self._env, None, None, ""
        if env is not None:
            env.close()

    def _environment(self, world: World) -> Env:
        if self._env is None or self._world != world:
            self.close()
            self._env, self._world = _made(world, self.render), world
        return self._env

    def _compare(self, logged: EnvSpec, now: EnvSpec) -> None:
        text = changed_versions(logged, now)
        if text and text not in self._warned:
            self._warned.add(text)
            output.note(f"some episodes were logged with other versions: {text}")


def no_pictures(clip: Clip) -> str:
    """Return why a clip has no pictures, and what to do."""
    whose = "an arm's episode keeps none" if registry.is_arm(clip.world[0]) else "it has no poses"
    return f"{clip.folder} has no pictures to export ({whose}); --no-videos exports the rest"


def _made(world: World, render: str | None) -> Env:
    sim, suite, index, logged = world
    output.note(choose_graphics(sim))
    return separate_world(find_simulator(sim), sim, suite, index, render or logged)
