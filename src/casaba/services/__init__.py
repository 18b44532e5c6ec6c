"""One room per process. A service builds the parts, orders the steps of plans and moves values
between kube/, node/, net/ and policy/; it does not know other services.
"""
