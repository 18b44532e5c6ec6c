"""Removes from a node everything that casaba made."""

from collections.abc import Iterator
from pathlib import PurePath

from casaba.node.host_tree import HostTree
from casaba.policy.removal import NodeSeen, RemovalPlan, plan_removal
from casaba.settings.uninstall import NodeCleanSettings


def clean_node(settings: NodeCleanSettings) -> Iterator[str]:
    """Remove it, and tell each thing once it is gone.

    Blocking. Raises ClaimsPrepared before anything is removed, and HostError; then the rest is
    still there, and it can be done again.
    """
    tree, paths = HostTree(settings.host_root), settings.paths
    seen = NodeSeen(
        cdi_files=tree.names(paths.cdi_dir),
        registry_files=tree.names(paths.registry_dir),
        checkpoint_files=tree.names(paths.checkpoint_dir),
    )
    plan = plan_removal(paths, seen, by_force=settings.force)
    for folder in (paths.cdi_dir, paths.registry_dir, *(one.parent for one in plan.folders)):
        if tree.leads_out(folder):
            yield f"not seen: {folder} is below a link out of {settings.host_root}"
    removed = 0
    for path in _carried_out(tree, plan):
        removed += 1
        yield f"removed: {path}"
    if not removed:
        yield "nothing of casaba is here"


def _carried_out(tree: HostTree, plan: RemovalPlan) -> Iterator[PurePath]:
    yield from (path for path in plan.files if tree.remove_file(path))
    yield from (folder for folder in plan.folders if tree.remove_folder(folder))
