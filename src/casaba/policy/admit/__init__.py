"""Claims and templates judged before they are stored: what the driver would refuse, and what waits.

The webhook asks here for what CEL can't say; the admission policies of the chart refuse a part of
it without the webhook. May use allocation, cel and parameters.
"""

from casaba.policy.admit.judge import judge_claim
from casaba.policy.admit.verdict import Verdict

__all__ = ["Verdict", "judge_claim"]
