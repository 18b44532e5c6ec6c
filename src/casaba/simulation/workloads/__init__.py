"""Pods, nodes and their claims as a control plane reads them: what scheduler and controllers share.

Pure but for `following`, which leads an informer's news to those who want them, and `writing`.
"""
