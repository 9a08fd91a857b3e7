"""mpi-sppy: progressive hedging of the farmer, whose scenarios ranks share among them."""

import logging

import pyomo.environ as pyo
from mpi4py import MPI
from mpisppy import scenario_tree
from mpisppy.opt.ph import PH

YIELDS = {"below": 0.8, "average": 1.0, "above": 1.2}
BEST = -108_390.0  # Birge and Louveaux, Introduction to Stochastic Programming, 1.1
logging.disable(logging.INFO)
comm = MPI.COMM_WORLD


def farm(name):
    """500 acres of wheat, corn and beets in a year of some kind."""
    model, kind = pyo.ConcreteModel(name=name), YIELDS[name]
    crops = ("wheat", "corn", "beets")
    model.acres = pyo.Var(crops, bounds=(0, 500))
    model.land = pyo.Constraint(expr=sum(model.acres[crop] for crop in crops) <= 500)
    model.bought = pyo.Var(("wheat", "corn"), bounds=(0, None))
    model.sold = pyo.Var(crops, bounds=(0, None))
    model.dear = pyo.Var(bounds=(0, 6000))  # beets within the quota
    grown = {"wheat": 2.5, "corn": 3.0, "beets": 20.0}
    need = {"wheat": 200, "corn": 240}
    model.fed = pyo.Constraint(
        ("wheat", "corn"),
        rule=lambda m, crop: (
            grown[crop] * kind * m.acres[crop] + m.bought[crop] - m.sold[crop] >= need[crop]
        ),
    )
    model.beets = pyo.Constraint(
        expr=model.dear + model.sold["beets"] <= grown["beets"] * kind * model.acres["beets"]
    )
    model.first = pyo.Expression(
        expr=150 * model.acres["wheat"] + 230 * model.acres["corn"] + 260 * model.acres["beets"]
    )
    model.cost = pyo.Objective(
        expr=model.first
        + 238 * model.bought["wheat"]
        + 210 * model.bought["corn"]
        - 170 * model.sold["wheat"]
        - 150 * model.sold["corn"]
        - 36 * model.dear
        - 10 * model.sold["beets"]
    )
    model._mpisppy_probability = 1 / len(YIELDS)  # noqa: SLF001 - the names that mpi-sppy asks for
    model._mpisppy_node_list = [  # noqa: SLF001
        scenario_tree.ScenarioNode("ROOT", 1.0, 1, model.first, [model.acres], model)
    ]
    return model


options = {
    "solver_name": "appsi_highs",
    "PHIterLimit": 50,
    "defaultPHrho": 1,
    "convthresh": 1e-4,
    "linearize_proximal_terms": True,
    "proximal_linearization_tolerance": 1e-2,
    "verbose": False,
    "display_progress": False,
    "display_timing": False,
    "iter0_solver_options": {},
    "iterk_solver_options": {},
}
hedging = PH(options, list(YIELDS), farm, mpicomm=comm)
_, expected, bound = hedging.ph_main()
if comm.rank == 0:
    assert abs(expected - BEST) < 0.01 * abs(BEST), expected
    assert bound <= BEST, bound
    print("fine")
