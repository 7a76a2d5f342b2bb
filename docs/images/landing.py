"""Draw ``landing.png``, the first picture of the documentation: what is seen, what is recognised.

python docs/images/landing.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from onlooker import PolicyRecognizer, plot
from onlooker.worlds import CircularMotion

EXTENT = (-11.0, 11.0, -11.0, 11.0)


def main() -> None:
    """Sample Example 1 and draw two panels."""
    world = CircularMotion()
    demos, _ = world.rollout(10, 100, random_state=0)
    posterior = PolicyRecognizer(world.dynamics, random_state=0).fit(demos).posterior_
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.9), dpi=140, layout="constrained")
    plot.trajectories(demos, left)
    left.set_title("what is seen", fontsize=15)
    nodes = posterior.problem.states
    plot.regions(posterior.assign, EXTENT, right, near=nodes)
    side = np.arange(-10.0, 10.1, 1.6)
    places = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    places = places[plot.distance_to(places, nodes) < 1.0]
    plot.policy_field(places, posterior.policy(places), world.dynamics.angles, right, length=1.3)
    right.set_title("what is recognised", fontsize=15)
    for ax in (left, right):
        if ax.get_legend() is not None:
            ax.get_legend().remove()
        ax.set(xlim=EXTENT[:2], ylim=EXTENT[2:], xlabel="", ylabel="", xticks=[], yticks=[])
    figure.savefig(Path(__file__).with_suffix(".png"), pil_kwargs={"optimize": True})


if __name__ == "__main__":
    main()
