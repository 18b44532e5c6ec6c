"""Every error that casaba raises on purpose.

    CasabaError                  a message for a person: what was wrong, the value, what to do
    ├── InvalidInput             a file, flag or object that somebody gave us (exit code 2)
    │   ├── NoSuchProgram        a command to run that is not there (exit code 127, as env(1))
    │   ├── AllocationFailed     a claim or class that is wrong on any node (policy.allocation)
    │   └── Cel…                 an expression that is wrong or fails, see policy.cel.errors
    ├── HostError                the machine lacks something: a driver, a tool (exit code 3)
    ├── PrepareRefused           a claim that this node can't serve; becomes the claim's error
    │   └── NoRoom               … until another claim gives back what it holds
    ├── ClaimsPrepared       a node that can't be cleaned: its claims are in use (policy.removal)
    ├── NodesNotClean        … by the uninstall, in time
    ├── LeftoversStay        objects that the uninstall can't delete
    ├── PodRefused           a classic pod that can't become claims (policy.convert)
    ├── PluginCallFailed         no answer on a DRA driver's socket (net.dra_client)
    ├── LeadershipLost           work that had to end with its Lease (kube.election)
    ├── kube.errors.KubeError    the API server's answers, see there
    └── of the simulated cluster, each told in an event of the pod or claim:
        NotBound (scheduler); ClaimsNotReady, RegistrationRefused and others (kubelet)

Lower libraries' errors are translated once, at the border of the room that calls them.
"""


class CasabaError(Exception):
    """A failure with a message that a person can act on."""

    exit_code = 1


class InvalidInput(CasabaError):
    """Something given to us is wrong; nothing was changed."""

    exit_code = 2


class NoSuchProgram(InvalidInput):
    """The command that was to be run is not there."""

    exit_code = 127


class HostError(CasabaError):
    """The machine lacks what the operation needs."""

    exit_code = 3


class PrepareRefused(CasabaError):
    """A claim can't be prepared on this node; nothing of it is left half done."""


class NoRoom(PrepareRefused):
    """The card is promised to others; that ends when one of them is unprepared."""
