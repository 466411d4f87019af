"""docs/search.svg: accuracy against cost, by controller and by evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from searching.lines import Line
from searching.plan import CONTROLLERS, EVALUATORS, GUIDED, MIDDLE
from searching.rivals import Curve


def figure(found: list[Line], base: dict[str, Curve], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "ramify"
    colours = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
    markers = "osD^vPX<>*hpd8H"
    panels, axes = plt.subplots(1, 2, figsize=(12, 5.6), sharey=True)
    dashes: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (5, 1)), (0, (1, 1)))
    for axis in axes:
        plain = [
            axis.plot(
                curve.tokens, curve.right.mean(1), color="0.55", linestyle=line, linewidth=1, zorder=0, label=name
            )[0]
            for (name, curve), line in zip(base.items(), dashes, strict=True)
        ]
        axis.set(xscale="log", xlabel="tokens a question: drawn, and read by evaluators")
    axes[1].add_artist(axes[1].legend(handles=plain, fontsize=6, loc="lower left", frameon=False))
    for i, name in enumerate(CONTROLLERS):
        mine = [each for each in found if each.job.controller == name and each.job.evaluator == GUIDED]
        style = {"color": colours[i % 7], "marker": markers[i], "markersize": 4, "linewidth": 1, "label": name}
        axes[0].plot([e.tokens for e in mine], [e.own.value for e in mine], **style)
    for i, evaluator in enumerate(EVALUATORS):
        mine = [each for each in found if each.job.size == MIDDLE and each.job.evaluator == evaluator]
        axes[1].scatter(
            [e.tokens for e in mine],
            [e.own.value for e in mine],
            color=colours[i],
            marker=markers[i],
            s=18,
            label=evaluator,
        )
    axes[0].set(ylabel="accuracy", title=f"controllers, three sizes each ({GUIDED})")
    axes[1].set(title="evaluators, every controller at the middle size")
    for axis in axes:
        handles = [each for each in axis.get_legend_handles_labels()[0] if each not in axis.lines[: len(base)]]
        axis.legend(handles=handles, fontsize=6, loc="lower right", frameon=False)
    panels.tight_layout()
    panels.savefig(path, metadata={"Date": None})
