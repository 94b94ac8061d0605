"""Records survival trees of scikit-survival for samples that are drawn several times or not at all: tree_drawn.json.

Data are those of tree.json. Draws are weights of `SurvivalTree.fit`, as in its forests; sizes of nodes count each sample once.
Run in this folder with scikit-survival installed.
"""

import json

import numpy as np
import sksurv
from sksurv.tree import SurvivalTree
from sksurv.util import Surv

data = json.load(open("tree.json"))
x, y = np.array(data["x"]), Surv.from_arrays(data["event"], data["time"])
n = len(x)
cases = []
for seed, split, leaf in [(0, 20, 10), (1, 14, 7), (2, 30, 8)]:
    drawn = np.bincount(np.random.default_rng(seed).integers(0, n, n), minlength=n)

    def fit(state):
        tree = SurvivalTree(min_samples_split=split, min_samples_leaf=leaf, max_features=None, random_state=state)
        return tree.fit(x, y, sample_weight=drawn.astype(float))

    tree = fit(0)
    # No two columns have the same best split: chance decides nothing.
    for state in range(1, 6):
        other = fit(state)
        assert (other.tree_.feature == tree.tree_.feature).all(), (seed, state)
        assert (other.tree_.threshold == tree.tree_.threshold).all(), (seed, state)
    cases.append(
        {
            "min-samples-split": split,
            "min-samples-leaf": leaf,
            "drawn": drawn.tolist(),
            "feature": tree.tree_.feature.tolist(),
            "threshold": tree.tree_.threshold.tolist(),
            "left": tree.tree_.children_left.tolist(),
            "right": tree.tree_.children_right.tolist(),
            "risk": tree.predict(x).tolist(),
        }
    )
    print(seed, len(tree.tree_.feature), "nodes")
provenance = (
    f"scikit-survival {sksurv.__version__}, SurvivalTree(max_features=None).fit(x, y, sample_weight=drawn), x and y of tree.json; "
    "the same trees with random_state 0 to 5"
)
json.dump({"provenance": provenance, "trees": cases}, open("tree_drawn.json", "w"))
