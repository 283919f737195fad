"""`python -m steptime`: the same as the command `steptime`."""

from steptime.cli.main import main

main()
