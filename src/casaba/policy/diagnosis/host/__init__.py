"""What is wrong with a machine: what is looked at there, and what is made of it. Pure.

May use wire, and of its own package's other half nothing: see `cluster`.
"""
