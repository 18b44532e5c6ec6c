"""What is wrong with a cluster: what is looked at in it, and what is made of it. Pure.

One module for each thing that can be wrong, with its checks; `tables` puts them in order. May use
conflicts, slices, cel and the libraries of the control plane's image, which `host` has not.
"""
