"""Problems of bare actions: the paper's model, which most tests are about."""

from functools import partial

from onlooker.problem import Problem
from onlooker.repertoire import Actions

bare_problem = partial(Problem.from_demonstrations, repertoire=[Actions()])
