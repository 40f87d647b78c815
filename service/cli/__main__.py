"""`python -m service.cli`: how the processes that `up` starts are called."""

from service.cli.app import main

main()
