"""A user's program, which mypy checks and nobody runs: the package's types must reach it.

`make lint` checks it against the source, `make package` against the installed package.
"""

from typing import Any, assert_type

import numpy as np

from onlooker import Demonstrations, PolicyRecognizer, Posterior, Problem, sample
from onlooker.dynamics import DisplacementDynamics
from onlooker.partitions import DistanceDependent

demos = Demonstrations([np.zeros((3, 2))])
dynamics = DisplacementDynamics.compass(8, step=1.0, sigma=0.2)
problem = Problem.from_demonstrations(demos, dynamics)
assert_type(sample(problem, DistanceDependent(), draws=10), Posterior)
posterior = PolicyRecognizer(dynamics).fit(demos).posterior_
assert_type(posterior.policy(interval=0.9).low, np.ndarray[Any, np.dtype[Any]])
sample(problem, DistanceDependent(), draws="many")  # type: ignore[arg-type]
