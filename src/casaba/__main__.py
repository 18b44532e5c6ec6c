"""`python -m casaba`."""

from casaba.cli import main

main()
