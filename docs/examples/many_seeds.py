"""Success of a policy that errs, over seeds, with its interval."""

from zetta.runtime.cli.assemble import assemble
from zetta.runtime.core import RunSpec, Sampled
from zetta.runtime.success_rates import wilson

N = 6
solved = 0
for seed in range(N):
    spec = RunSpec("toy", "toy_pick", 0, Sampled(), seed, policy="toy/reach", policy_seed=seed)
    solved += assemble(spec).run().success

low, high = wilson(solved, N)
print(f"{solved}/{N} solved, 95 % interval {low:.0%} to {high:.0%}")
