#!/bin/bash
# What the scenario's pod runs: shows the card, then trains on it.
set -eu
nvidia-smi
exec "$(dirname "$0")/benchmark" "$@"
