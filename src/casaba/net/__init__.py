"""Sockets that are not the API server's: here the kubelet's, on unix sockets.

The only room beside kube/ that opens sockets. Speaks the wire forms, decides nothing.
"""
