"""Read a logged episode: who drove when, how far the hand went, and what the critics said."""

import sys
from itertools import groupby
from pathlib import Path

import numpy as np

from zetta.runtime.episode_log import read_episode

episode = read_episode(Path(sys.argv[1]))
print(episode.header.instruction)
for source, ticks in groupby(episode.ticks, key=lambda tick: tick.source):
    told = list(ticks)
    hand = np.array([tick.proprio.arms[0].ee_pos for tick in told])
    way = np.linalg.norm(np.diff(hand, axis=0), axis=1).sum()
    print(f"ticks {told[0].index:3}-{told[-1].index:3}  {source:12} the hand went {way:.2f} m")
for tick in episode.ticks:
    for verdict in tick.verdicts:
        if verdict.decision != "pass":
            print(f"tick {tick.index}: {verdict.critic} says {verdict.decision}: {verdict.reason}")
