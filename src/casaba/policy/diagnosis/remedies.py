"""What to do about what can be seen in a cluster as well as on a node; pure."""

UNGUARDED = (
    "is the program linked statically, or is /etc/ld.so.preload hidden in its image? Use an image "
    "with a dynamic loader (glibc or musl) and start the pod again"
)
"""A process on a card that no guard limits."""


def enable_cdi(section: str) -> str:
    """containerd's configuration has CDI in another section since version 3 of it."""
    return (
        f'set enable_cdi = true under [plugins."{section}"] in /etc/containerd/config.toml and '
        "start containerd again"
    )


CONTAINERD_1 = "io.containerd.grpc.v1.cri"
CONTAINERD_2 = "io.containerd.cri.v1.runtime"
