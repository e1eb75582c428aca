"""Network monitoring: packets that several receivers heard, some of them wrongly, put right.

packets      synthetic receptions: correlated bit errors, losses, known truth
_kernels     align, correlate, cluster and reconstruct
query        the query over the receivers' streams
evaluate     what was delivered, beside what was sent
measure      `xstream bench netmon`, in packets a second
profiled     `xstream profile netmon`
cli          `xstream netmon`
"""

from __future__ import annotations

from netmon.evaluate import Outcome, evaluate
from netmon.packets import Receptions, generate
from netmon.query import Delivered, declare, monitor

__all__ = ["Delivered", "Outcome", "Receptions", "declare", "evaluate", "generate", "monitor"]
