"""What an agent may do: behaviours, each a policy of its own, of several kinds.

A controller is a distribution over the behaviours of a repertoire: actions, blurred actions,
heading for a goal, turning, whatever you add.
"""

from onlooker.repertoire.actions import Actions, Overall, Stay
from onlooker.repertoire.base import Behaviour, Kind, Policies
from onlooker.repertoire.blurs import Blurs
from onlooker.repertoire.goals import Goals
from onlooker.repertoire.turns import Turns

__all__ = ["Actions", "Behaviour", "Blurs", "Goals", "Kind", "Overall", "Policies", "Stay", "Turns"]
