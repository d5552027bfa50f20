"""Videos that a trainer can seek in: one picture for each tick, at a constant rate.

Every second picture is a key frame and none depends on a later one, so that the picture at a time
is found exactly; several videos of one camera join without being encoded again.
"""

from __future__ import annotations

import subprocess
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from zetta.runtime.core import Image
from zetta.runtime.errors import InfraError, SpecMismatch

CODEC: Final = "h264"
PIXELS: Final = "yuv420p"
CRF: Final = 18
"""Quality: 0 loses nothing, 23 is the encoder's default."""
GROUP: Final = 2
"""Pictures from one key frame to the next."""
_BROKEN: Final = (OSError, ImportError, RuntimeError, StopIteration)


class Film:
    """Writes one video. Used by one thread, and closed whatever happens."""

    def __init__(self, path: Path, fps: float) -> None:
        """Prepare; the first picture gives the size."""
        self.frames = 0
        self._path, self._fps = path, fps
        self._size: tuple[int, ...] = ()
        self._encoder: Generator[None, Image | None, None] | None = None

    def add(self, image: Image) -> None:
        """Append a picture.

        Raises:
            SpecMismatch: it has an odd side, or another size than the ones before.
            InfraError: the encoder does not work.
        """
        size = image.shape[:2]
        self._size = self._size or size
        if size != self._size or size[0] % 2 or size[1] % 2:
            raise SpecMismatch(
                f"got a picture of {size[1]}x{size[0]} for {self._path.name}, expected "
                f"{self._size[1]}x{self._size[0]} with even sides; --size makes all alike"
            )
        try:
            if self._encoder is None:
                self._encoder = self._started()
            self._encoder.send(np.ascontiguousarray(image))
        except _BROKEN as error:
            raise InfraError(f"cannot write the video {self._path}: {error}") from error
        self.frames += 1

    def close(self) -> None:
        """Finish the file; calling it again does nothing."""
        encoder, self._encoder = self._encoder, None
        if encoder is not None:
            encoder.close()

    def _started(self) -> Generator[None, Image | None, None]:
        import imageio_ffmpeg

        encoder: Generator[None, Image | None, None] = imageio_ffmpeg.write_frames(
            str(self._path),
            (self._size[1], self._size[0]),
            fps=self._fps,
            codec="libx264",
            pix_fmt_out=PIXELS,
            quality=None,
            macro_block_size=2,
            ffmpeg_log_level="error",
            # One thread: the same pictures give the same file.
            output_params=["-crf", str(CRF), "-g", str(GROUP), "-bf", "0", "-threads", "1",
                           "-preset", "fast", "-movflags", "+faststart"],
        )  # fmt: skip
        encoder.send(None)
        return encoder


def join(parts: Sequence[Path], target: Path) -> None:
    """Put videos of one camera behind each other, without encoding them again.

    Raises:
        InfraError: it does not work.
    """
    import imageio_ffmpeg

    listing = target.with_name(f".{target.name}.list")
    lines = ["file '" + str(part.resolve()).replace("'", "'\\''") + "'" for part in parts]
    listing.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-v", "error", "-f", "concat", "-safe", "0",
               "-i", str(listing), "-c", "copy", "-movflags", "+faststart", "-f", "mp4",
               str(target)]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError as error:
        raise InfraError(f"cannot join videos into {target}: {error}") from error
    finally:
        listing.unlink(missing_ok=True)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason"]
        raise InfraError(f"cannot join videos into {target}: {said[-1]}")


def check_length(path: Path, frames: int) -> None:
    """Count the pictures of a finished video.

    Raises:
        InfraError: they are not as many as were written.
    """
    import imageio_ffmpeg

    try:
        found = imageio_ffmpeg.count_frames_and_secs(str(path))[0]
    except (OSError, RuntimeError) as error:
        raise InfraError(f"cannot read back the video {path}: {error}") from error
    if found != frames:
        raise InfraError(f"the video {path} has {found} pictures, expected {frames}")
