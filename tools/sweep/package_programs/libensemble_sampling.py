"""libEnsemble: a manager and workers over MPI evaluate points of a grid."""

import numpy as np
from libensemble import Ensemble
from libensemble.gen_funcs.sampling import latin_hypercube_sample
from libensemble.specs import ExitCriteria, GenSpecs, LibeSpecs, SimSpecs


def squared(points, _info):
    out = np.zeros(len(points), dtype=[("y", float)])
    out["y"] = (points["x"] ** 2).sum(axis=1)
    return out


if __name__ == "__main__":
    study = Ensemble(parse_args=False)
    study.libE_specs = LibeSpecs(comms="mpi", disable_log_files=True, save_every_k_sims=0)
    study.gen_specs = GenSpecs(
        gen_f=latin_hypercube_sample,
        outputs=[("x", float, (2,))],
        user={"gen_batch_size": 20, "lb": np.array([-3, -2]), "ub": np.array([3, 2])},
    )
    study.sim_specs = SimSpecs(sim_f=squared, inputs=["x"], outputs=[("y", float)])
    study.exit_criteria = ExitCriteria(sim_max=40)
    study.add_random_streams()
    history, _, flag = study.run()
    if study.is_manager:
        done = history[history["sim_ended"]]
        assert len(done) >= 40
        assert flag == 0
        assert np.allclose(done["y"], (done["x"] ** 2).sum(axis=1))
        print("fine")
