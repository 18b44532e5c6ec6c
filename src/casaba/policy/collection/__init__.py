"""Which ResourceClaimTemplates that the webhook made may go; pure.

    made ──► in use (a pod that has not ended names it) ──► unused ──► period over ──► deleted
      └──────────────────────────────────────────────────────▲ │
                                     renewed by the webhook ◄─┘

The webhook stamps a template when it is used, unless the stamp is younger than a minute. A pod
whose admission used it appears seconds later. So an unused template goes only when its stamp is
older than the period, and when we have known this version of it for longer than minute and
seconds together: the first needs clocks that agree, the second none. Whoever deletes sets UID and
version as preconditions, so that a renewal in the last moment wins. Templates that people copied
with the label, under names of their own, are left alone.
"""

from casaba.policy.collection.plan import CollectionPlan, plan_collection
from casaba.policy.collection.templates import (
    LAST_USED,
    MADE_BY,
    WEBHOOK,
    MadeTemplate,
    TemplateName,
    made_template,
    names_of_pod,
)

__all__ = [
    "LAST_USED",
    "MADE_BY",
    "WEBHOOK",
    "CollectionPlan",
    "MadeTemplate",
    "TemplateName",
    "made_template",
    "names_of_pod",
    "plan_collection",
]
