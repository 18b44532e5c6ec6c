"""`casaba node-agent`: finds the cards, publishes them for ever, serves claims to the kubelet."""
