"""Run one episode in Python: describe it, build it, run it."""

from zetta.runtime.cli.assemble import assemble
from zetta.runtime.core import Init, RunSpec

spec = RunSpec(sim="toy", suite="toy_pick", task=0, layout=Init(0), policy="toy/reach-exact")
result = assemble(spec).run()

print(f"solved: {result.success}, {result.ticks} ticks, ended by {result.reason}")
print(f"who drove: {dict(result.sources)}")
