"""Records DeepHit with several causes from pycox: python deephit_causes.py > deephit_causes.json

Versions are in the file that it writes. Outputs of the network are a formula, so that no random numbers are needed.
"""

import json
import math

import numpy
import pycox
import torch
from pycox.models import loss
from pycox.models.deephit import pad_col

N, CAUSES, CUTS = 14, 3, 6
INDEX = [1, 2, 2, 3, 5, 0, 4, 2, 5, 1, 3, 0, 4, 2]
EVENT = [1, 2, 0, 1, 3, 0, 2, 1, 0, 3, 2, 2, 1, 1]


def outputs():
    cells = [
        [[1.5 * math.sin(1.0 + 3.0 * i + 5.0 * k + 0.7 * m * (i % 4 + 1)) for m in range(CUTS)] for k in range(CAUSES)]
        for i in range(N)
    ]
    # What a network holds: single precision.
    return torch.tensor(numpy.array(cells, dtype=numpy.float32).astype(numpy.float64), requires_grad=True)


def main():
    torch.set_default_dtype(torch.float64)
    index, event = torch.tensor(INDEX), torch.tensor(EVENT)
    comparable = torch.tensor(
        [[float(e > 0 and (q < p or (q == p and f == 0))) for p, f in zip(INDEX, EVENT)] for q, e in zip(INDEX, EVENT)],
        dtype=torch.float64,
    )
    cases = []
    for alpha, sigma in [(0.2, 0.1), (0.5, 0.4), (1.0, 0.1), (0.0, 0.25)]:
        phi = outputs()
        # The package adds 1e-7 inside its logarithms.
        of_loss = loss.DeepHitLoss(alpha, sigma)
        value = of_loss(phi, index, event, comparable)
        value.backward()
        cases.append(
            {"alpha": alpha, "sigma": sigma, "loss": value.item(), "gradient": phi.grad.reshape(N, -1).tolist()}
        )
    phi = outputs().detach()
    nll = loss.nll_pmf_cr(phi, index, event, reduction="none")
    # As DeepHit.predict_cif of the package does.
    incidence = pad_col(phi.view(N, -1)).softmax(1)[:, :-1].view(phi.shape).cumsum(2)
    record = {
        "provenance": {
            "package": f"pycox {pycox.__version__}, torch {torch.__version__}, numpy {numpy.__version__}",
            "calls": "pycox.models.loss.DeepHitLoss(alpha, sigma)(phi, idx_durations, events, rank_mat), its gradient, "
            "nll_pmf_cr, and the cumulative sum of DeepHit.predict_pmf, in double precision",
            "script": "fairtte-survival/tests/golden/deephit_causes.py",
        },
        "n-causes": CAUSES,
        "index": INDEX,
        "cause": EVENT,
        "outputs": phi.reshape(N, -1).tolist(),
        "cases": cases,
        "nll": nll.tolist(),
        "incidence": incidence.tolist(),
    }
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
