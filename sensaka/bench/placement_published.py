"""What FGD's authors published: percent of cards allocated at 100, 110, 120 and 130 % arrived, mean of 10 seeds.

Source: experiments/analysis/expected_results/analysis_allo_discrete.csv of
hkust-adsl/kubernetes-scheduler-simulator (USENIX ATC 2023 artifact).
"""

from collections.abc import Mapping

FGD: Mapping[str, tuple[float, float, float, float]] = {
    "default": (95.23, 95.30, 95.35, 95.39),
    "cpu050": (95.00, 95.08, 95.14, 95.21),
    "cpu100": (95.21, 95.27, 95.31, 95.35),
    "cpu200": (94.82, 94.91, 94.99, 95.05),
    "cpu250": (93.20, 93.27, 93.35, 93.41),
    "gpushare40": (93.96, 94.03, 94.09, 94.15),
    "gpushare60": (91.25, 91.31, 91.35, 91.40),
    "gpushare80": (89.08, 89.16, 89.23, 89.31),
    "gpushare100": (86.64, 86.73, 86.81, 86.90),
    "multigpu20": (95.53, 95.58, 95.61, 95.65),
    "multigpu30": (96.36, 96.40, 96.42, 96.46),
    "multigpu40": (96.91, 96.93, 96.96, 96.99),
    "multigpu50": (97.09, 97.12, 97.15, 97.18),
    "gpuspec10": (94.66, 94.84, 94.89, 94.95),
    "gpuspec20": (94.66, 94.73, 94.78, 94.84),
    "gpuspec25": (93.91, 94.63, 94.68, 94.74),
    "gpuspec33": (87.84, 94.43, 94.50, 94.55),
}
