"""Helm's commands after one of our hooks has refused an uninstall.

Helm marks a release as uninstalling before its pre-delete hooks run, and leaves it so when one
fails: it can be uninstalled again, but no upgrade is taken until it has been rolled back.
"""

from casaba.settings.uninstall import HelmRelease


def kept(release: HelmRelease) -> str:
    """The command after which the release is as it was."""
    return f"helm rollback {release.name} {release.revision} -n {release.namespace}"


def uninstalled_with(release: HelmRelease, value: str) -> str:
    """The commands that uninstall with another value of the chart, `KEY=VALUE`."""
    named = f"{release.name} CHART -n {release.namespace}"
    return (
        f"{kept(release)}, then helm upgrade {named} --reuse-values --set {value}, then uninstall"
    )
